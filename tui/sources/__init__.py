"""Data sources of the monitor: logs, read repeatedly, and nothing else."""
