"""What people ask of a run from outside, and how a process ends its work on it."""
