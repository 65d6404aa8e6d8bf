"""What a run reads: published reviews, and what agents made of them elsewhere."""
