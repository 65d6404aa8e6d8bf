"""Prints completion."""

from __future__ import annotations

import click


@click.command()
def completion() -> None:
    """Print the completion of a shell."""
