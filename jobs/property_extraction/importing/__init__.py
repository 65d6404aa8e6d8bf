"""Predictions and verdicts that were made elsewhere, as the answers of a run."""
