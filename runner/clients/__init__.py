"""Model clients behind one protocol, and the wire formats they send."""
