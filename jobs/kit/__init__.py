"""Building blocks of jobs: inputs, measures, statistics, comparison and report."""
