"""What the tables show of each of their rows."""
