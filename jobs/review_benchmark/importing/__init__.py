"""Results of agents as the answers of a run."""
