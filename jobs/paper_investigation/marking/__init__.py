"""Marking: stored answers become papers with truth, readings, verdicts and a score."""
