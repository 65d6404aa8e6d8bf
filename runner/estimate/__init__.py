"""Estimates runs: before any call, or under other limits."""
