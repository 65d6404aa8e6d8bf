"""Several jobs with several models and settings, from one file, in one process."""
