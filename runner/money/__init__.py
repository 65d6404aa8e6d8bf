"""Prices, token bounds and the budget of calls."""
