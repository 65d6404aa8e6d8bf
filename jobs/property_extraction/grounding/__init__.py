"""Where a quote stands in its paper, if it does."""
