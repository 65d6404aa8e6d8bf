"""When a predicted value is the true one: numbers, units, words, space groups."""
