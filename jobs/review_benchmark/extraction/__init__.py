"""Extracts a review's ground truth from its text, and checks it against that text."""
