"""Reads runs of other tools: their logs, result files and batches.

`records` has what all forms are read into, and what they share; each form has a reader
in a module of its own, and `forms` is the table of them, with detection by content.
`tasks` matches the records with the items of a job, as answers of an imported run.
"""
