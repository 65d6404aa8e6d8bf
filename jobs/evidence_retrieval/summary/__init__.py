"""What a terminal shows of a scoring."""
