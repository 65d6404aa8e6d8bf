"""A finished run shown once more, at a speed of one's choice, by the same screens."""
