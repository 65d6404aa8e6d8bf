"""Reads a run's log for people and programs; it never writes."""
