"""A run's log as OpenTelemetry traces and metrics, by the GenAI conventions."""
