"""Runs parts of a run in separate processes, independent of each other."""
