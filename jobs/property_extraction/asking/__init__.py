"""Plans, prompts, schemas and the offline baseline."""
