"""Packs a scoring and everything needed to reproduce it (design/bundle.md)."""
