"""Comparison of predicted and true values: numbers, units, words, space groups."""
