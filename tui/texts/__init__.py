"""What can be read of a text, whoever wrote it: pure, and knows nothing of a run."""
