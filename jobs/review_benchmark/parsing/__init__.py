"""What replies say; nothing here ever raises on the text of a model."""
