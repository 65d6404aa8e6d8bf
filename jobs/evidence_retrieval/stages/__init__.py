"""Stages that call nobody: local, deterministic, without training.

Scores are rounded to ten decimals before they order anything, so that the way a machine
adds up cannot change a ranking. Ties go by falling score, then by place in the post.
"""
