"""What the replies of each stage say; nothing here raises on model output."""
