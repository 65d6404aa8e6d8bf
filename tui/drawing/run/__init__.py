"""The figures of a run: each panel, chart and line about it."""
