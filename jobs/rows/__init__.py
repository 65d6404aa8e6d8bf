"""Rows of input files, one at a time, and complaints that say where."""
