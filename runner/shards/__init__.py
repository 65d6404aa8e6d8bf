"""A part of a run in a process of its own, which knows nothing of the other parts."""
