"""What a log has recorded, carried elsewhere while it is written: immutable files."""
