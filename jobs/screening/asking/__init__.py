"""What is asked of a model: criteria, prompts, requests, and the plan of them."""
