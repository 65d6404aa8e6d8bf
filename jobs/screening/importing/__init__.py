"""Import of decisions that were made elsewhere."""
