"""Extracts the variants that a paper studies, and tests questions about them."""
