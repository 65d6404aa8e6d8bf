"""Summary texts of runs and models, as people read them."""
