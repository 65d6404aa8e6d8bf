"""Prints the pages of a PDF as JSON: a program, run as a process of its own.

A PDF comes from anywhere, and its reader is native code: what hangs, crashes or fills
the memory does so in here. Nothing of siftlog is imported.

    pages.py FILE PAGES SECONDS BYTES
"""

from __future__ import annotations

import json
import resource
import sys

PASSWORD = 4
"""FPDF_ERR_PASSWORD: the file is encrypted."""


def main(path: str, most_pages: int, seconds: int, memory_bytes: int) -> None:
    """Print `{"pages": [...]}`, or `{"error": ...}`: encrypted, broken or pages."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    # loaded under the limits
    import pypdfium2  # noqa: PLC0415 - see above

    try:
        document = pypdfium2.PdfDocument(path)
        if len(document) > most_pages:
            _say({"error": "pages"})
            return
        _say({"pages": [page.get_textpage().get_text_bounded() for page in document]})
    except pypdfium2.PdfiumError as error:
        locked = getattr(error, "err_code", None) == PASSWORD
        _say({"error": "encrypted" if locked else "broken"})


def _say(what: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(what))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]))
