"""Which reviews share papers, and which papers that brings near."""
