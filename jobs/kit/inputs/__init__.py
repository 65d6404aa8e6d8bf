"""Reads input files: rows, column maps, data sets, documents, samples."""
