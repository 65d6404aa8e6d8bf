"""How hard a set is: how topical its negatives are, and how doubtful."""
