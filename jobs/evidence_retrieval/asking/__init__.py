"""What is asked of models: the plan, the words, the windows, the offline baseline."""
