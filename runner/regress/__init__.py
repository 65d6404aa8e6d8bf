"""Runs the code of today over recorded runs and reports what differs."""
