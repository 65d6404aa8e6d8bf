"""What is odd about curated values and the rules they are scored by; none is fatal."""
