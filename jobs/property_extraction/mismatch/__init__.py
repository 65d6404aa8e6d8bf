"""Which wrong names may mean a missed one, by spelling and by value."""
