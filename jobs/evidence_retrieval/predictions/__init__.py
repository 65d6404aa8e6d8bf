"""Turns stored answers into predictions: outputs, rankings, gates."""
