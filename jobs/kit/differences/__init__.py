"""Attributes the changes between two scorings of a run to causes: `siftlog diff`."""
