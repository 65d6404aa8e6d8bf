"""Versioned sets of aliases, built by explicit steps."""
