"""From a planned task to a durable answer: deciding, sending, recording, growing."""
