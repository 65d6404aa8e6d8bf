"""What a run holds as tables for other programs: tasks, answers, scores."""
