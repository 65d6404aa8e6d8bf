"""A long text in the pager that everybody knows; the screen comes back afterwards."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from typing import Any

from textual.app import App, SuspendNotSupported

from store.printable import printable

_WIDEST = 8
"""Characters that stand for one at most, such as `<E0100>`."""
#: It shows what it is given and nothing else: no shell, no editor, no other files.
_SECURE = {"LESSSECURE": "1", "LESSCHARSET": "utf-8"}


def page(app: App[Any], text: str) -> str:
    """Show *text* in `less` until it is left.

    Returns:
        What kept it from being shown, with the next step; empty: nothing did.
    """
    less = shutil.which("less")
    if less is None:
        return "There is no 'less' on this machine: w writes the text to a file."
    safe = printable(text, limit=len(text), line=_WIDEST * len(text) + 1)
    try:
        with app.suspend():
            # ctrl+c is the pager's as long as it is there
            before = signal.signal(signal.SIGINT, signal.SIG_IGN)
            try:
                subprocess.run(  # noqa: S603 - a program of the user's own path
                    [less], input=safe.encode(), env=os.environ | _SECURE, check=False
                )
            finally:
                signal.signal(signal.SIGINT, before)
    except SuspendNotSupported:
        return "This terminal cannot be lent to a pager: w writes the text to a file."
    return ""
