"""The engine: turns planned tasks into durable answers."""
