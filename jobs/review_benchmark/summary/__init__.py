"""What a scoring says in the terminal."""
