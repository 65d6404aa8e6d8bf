"""Computes every metric of a scoring with its subset, definition and interval."""
