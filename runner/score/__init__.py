"""Scores runs from their logs."""
