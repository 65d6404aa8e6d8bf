"""What the figures of several jobs share."""
