"""Ships a live log elsewhere as immutable files."""
