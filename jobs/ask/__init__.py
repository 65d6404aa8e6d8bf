"""Asks questions of papers: a job declared in a recipe, or by flags."""
