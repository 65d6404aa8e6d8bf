"""What the monitor reads: logs, over and over, and never anything else."""
