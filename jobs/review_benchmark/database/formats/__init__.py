"""Readers of the files that papers are imported from, one a format, in flat memory."""
