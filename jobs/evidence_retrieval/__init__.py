"""Find the evidence sentences for a criterion, and know when there are none."""
