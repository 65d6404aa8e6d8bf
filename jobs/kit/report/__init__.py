"""The report of a scoring: one HTML file without a network, and its figures.

Found by entry point (group `siftlog.reports`), so that the runner knows no renderer.
"""
