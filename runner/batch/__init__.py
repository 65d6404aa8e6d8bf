"""Sends requests through providers' batch APIs: within a day, at half the price."""
