"""What models are asked: prompts, requests, the order of tasks, the offline answers."""
