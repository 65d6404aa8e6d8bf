"""What every job is made of: inputs, measures, statistics, comparison and report."""
