"""Computes predictions from stored answers: outputs, rankings, gates."""
