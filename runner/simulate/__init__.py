"""A simulated OpenAI-compatible endpoint, as a command and inside tests."""
