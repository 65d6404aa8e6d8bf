"""The pages of a PDF, read in a process with limits that is killed when it hangs."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from runner.errors import DatasetError

READER: Final = Path(__file__).with_name("pages.py")

SCANNED_CHARS: Final = 200
"""A page with fewer characters is most likely a picture of one."""

_TEXT: Final = "give its text as .txt instead"

ERRORS: Final = {
    "encrypted": f"it is encrypted (save it without a password, or {_TEXT})",
    "broken": f"it is no PDF, or a broken one ({_TEXT})",
}
"""What the process may say, but for too much of something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What reading one file may take."""

    pages: int = 2_000
    chars: int = 20_000_000  #: a page of print has some 5,000
    seconds: float = 120.0
    memory_bytes: int = 2 << 30


LIMITS: Final = Limits()


def pdf_pages(path: Path, limits: Limits = LIMITS) -> list[str]:
    """The raw text of each page.

    Raises:
        DatasetError: the reader is not installed, or the file is encrypted, scanned,
            broken or beyond a limit.
    """
    if find_spec("pypdfium2") is None:
        raise DatasetError(
            f"{path.name}: reading PDF files needs pypdfium2 (install siftlog[pdf], or "
            f"{_TEXT})."
        )
    try:
        done = subprocess.run(  # noqa: S603 - our own program, and no shell
            [
                sys.executable,
                "-P",
                READER,
                path,
                str(limits.pages),
                str(limits.chars),
                # the processor's seconds are whole ones
                str(int(limits.seconds) + 1),
                str(limits.memory_bytes),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=limits.seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise DatasetError(
            f"{path.name}: reading it took more than {limits.seconds:g} s and was "
            f"ended ({_TEXT})."
        ) from None
    if done.returncode != 0:
        raise DatasetError(
            f"{path.name}: its reader crashed, or needed more than "
            f"{limits.memory_bytes >> 20:,} MB ({_TEXT})."
        )
    said = json.loads(done.stdout)
    most = {"pages": limits.pages, "characters": limits.chars}.get(said.get("error"))
    if most is not None:
        raise DatasetError(
            f"{path.name}: it has more than {most:,} {said['error']} (keep what "
            "is to be read alone)."
        )
    if "error" in said:
        raise DatasetError(f"{path.name}: {ERRORS[said['error']]}.")
    pages: list[str] = said["pages"]
    thin = sum(len(page.strip()) < SCANNED_CHARS for page in pages)
    if 2 * thin > len(pages) or not pages:
        raise DatasetError(
            f"{path.name}: most pages hold no text, as scanned ones do (run it through "
            f"OCR, or {_TEXT})."
        )
    return pages
