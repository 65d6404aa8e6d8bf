"""Every number of a scoring; formulas are those of `jobs.metrics`."""
