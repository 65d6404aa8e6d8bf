"""What an extraction comes to: files, metrics and a text for people."""
