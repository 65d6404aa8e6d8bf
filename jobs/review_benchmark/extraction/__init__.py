"""Reads a review's ground truth from its own text and checks it against that text."""
