"""The event log: append, read, fold, project, verify. Knows nobody."""
