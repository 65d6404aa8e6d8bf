"""Compares a stored summary with numbers computed from rows, under definitions.

Each name of a summary refers to a figure. It is computed from the rows under siftlog's
definition, and, if the values differ, under other definitions in use.
"""
