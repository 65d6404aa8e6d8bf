"""Which record is a truth paper? Pure, and documented to the character."""
