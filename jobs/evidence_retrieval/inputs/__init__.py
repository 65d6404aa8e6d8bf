"""Reads what people bring: posts, criteria, gold, folds, configurations."""
