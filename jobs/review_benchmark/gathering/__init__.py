"""A run's answers as a sheet: what each agent made of each review."""
