"""A scoring with all that it takes to make it again, in one file (design/bundle.md)."""
