"""Compares a stored summary with numbers computed from rows, and names definitions.

Each name of a summary stands for a figure. It is computed from the rows under siftlog's
definition, and, where it differs, under other definitions that are in use.
"""
