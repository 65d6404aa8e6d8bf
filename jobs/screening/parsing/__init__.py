"""What replies say; never raises on model output."""
