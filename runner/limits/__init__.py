"""What an endpoint allows, found out: rates, calls at a time, waits, and its health."""
