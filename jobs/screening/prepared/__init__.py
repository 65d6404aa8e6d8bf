"""The set on disk: built once, the same bytes on every machine, and read again."""
