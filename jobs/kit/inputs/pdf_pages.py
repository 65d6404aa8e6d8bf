"""Prints the pages of a PDF as JSON: a program, run as a process of its own.

A PDF comes from anywhere, and its reader is native code: what hangs, crashes or fills
the memory does so in here. Nothing of siftlog is imported.

    pdf_pages.py FILE PAGES CHARACTERS SECONDS BYTES
"""

from __future__ import annotations

import json
import resource
import sys

PASSWORD = 4
"""FPDF_ERR_PASSWORD: the file is encrypted."""


def main(
    path: str, most_pages: int, most_chars: int, seconds: int, memory_bytes: int
) -> None:
    """Print `{"pages": [...]}`, or `{"error": ...}`.

    The error is `encrypted`, `broken`, or what there is too much of: `pages`,
    `characters`.
    """
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    # loaded under the limits
    import pypdfium2  # noqa: PLC0415 - see above

    try:
        document = pypdfium2.PdfDocument(path)
        if len(document) > most_pages:
            _say({"error": "pages"})
            return
        pages: list[str] = []
        for page in document:
            pages.append(page.get_textpage().get_text_bounded())
            most_chars -= len(pages[-1])
            if most_chars < 0:
                _say({"error": "characters"})
                return
        _say({"pages": pages})
    except pypdfium2.PdfiumError as error:
        locked = getattr(error, "err_code", None) == PASSWORD
        _say({"error": "encrypted" if locked else "broken"})


def _say(message: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(message))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:6]))
