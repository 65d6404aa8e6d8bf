"""The papers that an agent may find: a SQLite file with full-text search."""
