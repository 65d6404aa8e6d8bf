"""The monitor's screens."""
