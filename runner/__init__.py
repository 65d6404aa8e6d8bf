"""Planning, scheduling, limits, model clients and the command line."""
