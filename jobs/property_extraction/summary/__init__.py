"""The text that a terminal shows."""
