"""The verbs of the monitor."""
