"""How a list of any length stands: what of it is held, shown and read next."""
