"""The union of a run's logs: one log that every reader reads, made of all of them."""
