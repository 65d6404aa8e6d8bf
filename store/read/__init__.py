"""Reads a run's log for people and programs; read-only."""
