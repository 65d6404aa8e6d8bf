"""Text of models, prompts and files as it stands on a page."""

from __future__ import annotations

from collections.abc import Iterator


def quoted(text: str) -> Iterator[str]:
    """The lines of a text, set off so that it cannot pass for ours."""
    for line in text.splitlines() or [""]:
        yield f"      | {line}"
