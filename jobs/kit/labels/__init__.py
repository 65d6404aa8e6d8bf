"""Sessions, draws, gold values and agreement of labels."""
