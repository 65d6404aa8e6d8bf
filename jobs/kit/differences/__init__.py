"""What changed between two scorings of a run, and by which cause: `siftlog diff`."""
