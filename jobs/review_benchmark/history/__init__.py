"""What is remembered of a scoring, so that recall can be followed over runs."""
