"""Launches, resumes, controls and ends runs."""
