"""Writes a run's log: the interface that the engine uses, and how SQLite keeps it."""
