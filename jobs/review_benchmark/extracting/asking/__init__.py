"""What models are asked of a review's text, and what their replies say."""
