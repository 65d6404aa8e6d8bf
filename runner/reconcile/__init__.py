"""Compares the log of a run with what its provider billed."""
