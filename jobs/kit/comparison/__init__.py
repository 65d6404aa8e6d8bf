"""Comparison of two models on the items that both have: `siftlog compare`."""
