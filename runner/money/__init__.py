"""What calls cost, and what a run may spend."""
