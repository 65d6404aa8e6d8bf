"""Finds the evidence sentences for a criterion, and detects when there are none."""
