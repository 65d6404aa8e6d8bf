"""Reads every input file of the job, and says file and row where one is off."""
