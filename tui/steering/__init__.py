"""What a person asks of a run, from the key to the answer."""
