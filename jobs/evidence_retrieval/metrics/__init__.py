"""Measures a sheet: every number with its subset, definition and interval."""
