"""The jobs that ship with siftlog, and the metrics they score with.

For notebooks: `jobs.kit.frames` reads runs, `jobs.kit.metrics` has every statistic.
"""
