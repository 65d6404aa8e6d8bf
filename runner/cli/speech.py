"""What verbs say: data to stdout, sentences to stderr, an exit code at the end."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

import click

from store.printable import printable

DONE, ERROR, USAGE, FAILED_TASKS, BUDGET, INTERRUPTED, CHECK_FAILED = range(7)
"""Exit codes of every verb (architecture, "Command line")."""


def tell(sentence: str) -> None:
    """A sentence for people, on stderr."""
    click.echo(printable(sentence), err=True)


def record(values: Mapping[str, Any]) -> None:
    """One JSON object on one line of stdout, at once."""
    click.echo(json.dumps(values, ensure_ascii=False, allow_nan=False))
    sys.stdout.flush()


def text(block: str) -> None:
    """Text for people, on stdout, safe for a terminal."""
    for line in block.splitlines():
        click.echo(printable(line))
