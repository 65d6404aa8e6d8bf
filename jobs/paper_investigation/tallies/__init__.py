"""Tallies: what is counted over marked papers, and the metrics that come of it."""
