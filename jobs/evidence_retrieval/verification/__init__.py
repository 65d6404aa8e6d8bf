"""A second computation of every number that a stored summary holds.

Nothing here imports numpy or `jobs.kit.metrics`: what two independent readings agree on
is more than what one of them says twice. Rows and summary go in as plain text and JSON.
"""
