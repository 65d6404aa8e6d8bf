"""Estimates what a run takes, before any call or under other limits."""
