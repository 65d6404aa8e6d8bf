"""Limits and money of one run, lent to the processes that share it."""
