"""Versioned sets of names that stand for another, made by explicit steps."""
