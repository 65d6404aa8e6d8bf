"""Scores a verification: what each model says of each pair, and where they differ."""
