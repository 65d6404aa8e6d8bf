"""Whether an agent concludes what a review's authors concluded."""
