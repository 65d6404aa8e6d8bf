"""Sends commands to a run: from the key to the answer."""
