"""Reads the text of a PDF by page, in a separate process with limits.

A process that hangs, crashes or needs too much memory is ended, and the error names
the file.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from jobs.kit.inputs.rows import InputFindings
from runner.errors import DatasetError

READER: Final = Path(__file__).with_name("pdf_pages.py")

SCANNED_CHARS: Final = 200
"""A page with fewer characters is most likely a picture of one."""

_GIVE_TEXT: Final = "give its text as .txt instead"

ERRORS: Final = {
    "encrypted": f"it is encrypted (save it without a password, or {_GIVE_TEXT})",
    "broken": f"it is no PDF, or a broken one ({_GIVE_TEXT})",
}
"""What the process may say, but for too much of something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PdfLimits:
    """What reading one file may take."""

    pages: int = 2_000
    chars: int = 20_000_000  #: a page of print has some 5,000
    seconds: float = 120.0
    memory_bytes: int = 2 << 30


MAX_PAGES: Final = 400
"""Most pages of a paper by default: theses and Cochrane reviews have fewer."""

PDF_LIMITS: Final = PdfLimits()


def pdf_pages(path: Path, limits: PdfLimits = PDF_LIMITS) -> list[str]:
    """The raw text of each page.

    Raises:
        DatasetError: the file is encrypted, scanned, broken or beyond a limit.
    """
    output = _text_of_reader(path, limits, "keep only what is to be read")
    pages: list[str] = output["pages"]
    if 2 * _thin(pages) > len(pages) or not pages:
        raise DatasetError(
            f"{path.name}: most pages hold no text, as scanned ones do (run it through "
            f"OCR, or {_GIVE_TEXT})."
        )
    return pages


_SEEN: Final = "Pages have no text layer; the model sees their images."
_UNSEEN: Final = (
    "Pages have no text layer and are not read (run OCR, or set vision = true)."
)


def paper_pages(
    path: Path, findings: InputFindings, *, max_pages: int, vision: bool
) -> list[str]:
    """Reads the raw text of each page, and reports pages that a model cannot read.

    Args:
        path: of the PDF.
        findings: learns of pages without text.
        max_pages: a longer file is an error.
        vision: whether a model sees the pages too, so that none needs text.

    Raises:
        DatasetError: the file is encrypted, broken or beyond a limit, or no page has
            text and no model sees them.
    """
    limits = replace(PDF_LIMITS, pages=max_pages)
    output = _text_of_reader(
        path, limits, "raise max_pages, or keep only the pages to be read"
    )
    pages: list[str] = output["pages"]
    thin = _thin(pages)
    if not pages or (thin == len(pages) and not vision):
        raise DatasetError(
            f"{path.name}: no page has a text layer, as in a scan (run OCR, such as "
            f"ocrmypdf, or set vision = true for a model that sees)."
        )
    if output["scrambled"]:
        findings.add(
            "scrambled_columns",
            "warn",
            path.name,
            "The text of two columns seems to be read across both, line by line "
            "(convert the PDF with GROBID or docling, or set vision = true).",
            example=f"page {output['scrambled'][0]}",
            n=len(output["scrambled"]),
        )
    if thin:
        findings.add(
            "pages_without_text",
            "info" if vision else "warn",
            path.name,
            "Pages have no text layer"
            + (
                ", their images are sent."
                if vision
                else ", so the model does not read "
                "them (run OCR, or set vision = true)."
            ),
            n=thin,
        )
    return pages


def _thin(pages: Sequence[str]) -> int:
    return sum(len(page.strip()) < SCANNED_CHARS for page in pages)


def _text_of_reader(path: Path, limits: PdfLimits, cure: str) -> dict[str, Any]:
    output = _output_of_reader(path, limits, "text", limits.chars)
    _refuse(path, output, limits, cure)
    return output


def _refuse(
    path: Path, output: Mapping[str, Any], limits: PdfLimits, cure: str
) -> None:
    """Raises the error that the reader has printed, if any."""
    match output.get("error"):
        case None:
            return
        case "pages":
            sentence = f"it has {output['n']:,} pages, more than {limits.pages:,}"
        case "characters":
            sentence = f"it has more than {limits.chars:,} characters"
        case "pixels":
            sentence = f"the image of page {output['n']} is too large"
        case error:
            raise DatasetError(f"{path.name}: {ERRORS[error]}.")
    raise DatasetError(f"{path.name}: {sentence} ({cure}).")


def _output_of_reader(
    path: Path, limits: PdfLimits, mode: str, most: int, *rest: int
) -> dict[str, Any]:
    try:
        done = subprocess.run(  # noqa: S603 - our own program, and no shell
            [
                sys.executable,
                "-P",
                READER,
                mode,
                path,
                str(limits.pages),
                str(most),
                # the processor's seconds are whole ones
                str(int(limits.seconds) + 1),
                str(limits.memory_bytes),
                *map(str, rest),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=limits.seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise DatasetError(
            f"{path.name}: reading it took more than {limits.seconds:g} s and was "
            f"ended ({_GIVE_TEXT})."
        ) from None
    if done.returncode != 0:
        raise DatasetError(
            f"{path.name}: its reader crashed, or needed more than "
            f"{limits.memory_bytes >> 20:,} MB ({_GIVE_TEXT})."
        )
    output: dict[str, Any] = json.loads(done.stdout)
    return output
