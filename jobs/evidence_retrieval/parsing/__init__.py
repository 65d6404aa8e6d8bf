"""Reads replies: never raises on model output, counts what it had to mend."""
