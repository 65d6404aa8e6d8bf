"""Every number of a scoring, from matches and decisions."""
