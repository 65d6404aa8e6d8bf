"""Paper database: a SQLite file with full-text search."""
