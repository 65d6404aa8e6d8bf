"""From a folder and a job to an engine at work."""
