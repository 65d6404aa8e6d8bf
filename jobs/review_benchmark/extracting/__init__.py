"""Ground truth from a review's own text: read, cut, asked for, checked against it."""
