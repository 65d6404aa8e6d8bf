"""Requests that a provider answers together, within a day and at half the price."""
