"""Where a review's sections and references stand, found without a model."""
