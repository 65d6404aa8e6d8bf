"""Which papers of which kind a review is screened with."""
