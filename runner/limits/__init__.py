"""Learns and enforces an endpoint's limits: rates, concurrency, waits and health."""
