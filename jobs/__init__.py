"""The jobs that ship with siftlog, and the metrics they score with.

For notebooks: `jobs.frames` reads runs, `jobs.metrics` has every statistic.
"""
