"""Asks questions about papers, declared in a recipe or by options."""
