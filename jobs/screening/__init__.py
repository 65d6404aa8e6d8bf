"""Measures which eligible papers a model would lose, and the reading it would save."""
