"""Reads text and images of a PDF by page, in a separate process with limits.

A process that hangs, crashes or needs too much memory is ended, and the error names
the file.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final

import zstandard
from platformdirs import user_cache_path

from jobs.kit.inputs.rows import InputFindings
from runner.errors import DatasetError
from runner.messages import IMAGE_URI, ImagePart

READER: Final = Path(__file__).with_name("pdf_pages.py")

SCANNED_CHARS: Final = 200
"""A page with fewer characters is most likely a picture of one."""

_GIVE_TEXT: Final = "give its text as .txt instead"

ERRORS: Final = {
    "encrypted": f"it is encrypted (save it without a password, or {_GIVE_TEXT})",
    "broken": f"it is no PDF, or a broken one ({_GIVE_TEXT})",
}
"""Errors of the process, other than exceeded limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PdfLimits:
    """Limits of reading one file."""

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


def paper_pages(
    path: Path, findings: InputFindings, *, max_pages: int, vision: bool
) -> list[str]:
    """Reads the raw text of each page, and reports pages that a model cannot read.

    Args:
        path: of the PDF.
        findings: learns of pages without text.
        max_pages: a longer file is an error.
        vision: whether a model sees the pages too, so that none needs text. Their
            images are drawn at once, while other papers are read.

    Raises:
        DatasetError: the file is encrypted, broken or beyond a limit, or no page has
            text and no model sees them.
    """
    limits = replace(PDF_LIMITS, pages=max_pages)
    output = _PdfCache(path).text(limits.chars)
    n = len(output.get("pages", ())) or output.get("n", 0)
    if n > max_pages:
        output = {"error": "pages", "n": n}
    _refuse(path, output, limits, "raise max_pages, or keep only the pages to be read")
    pages: list[str] = output["pages"]
    if vision and len(pages) <= VISION_PAGES:
        page_images(path)
    thin = _thin(pages)
    if not pages or (thin == len(pages) and not vision):
        raise DatasetError(
            f"{path.name}: no page has a text layer, as in a scan (run OCR, such as "
            f"ocrmypdf, or set vision = true for a model that sees)."
        )
    if output["scrambled"] and not vision:
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


DPI: Final = 120
"""Resolution of page images: a letter of 10 points is 16 pixels high, and an A4 page of
992 x 1403 pixels is shown to most models unscaled."""

MOST_PIXELS: Final = 40_000_000
"""Pixels of one image; A0 at the usual resolution has 22 million."""

VISION_PAGES: Final = 100
"""Pages of a paper that is shown as images: Claude takes 100 images in a request."""

CACHED_PAPERS: Final = 4
"""Papers whose images are held, for consecutive requests about one paper."""


def page_images(
    path: Path, *, first: int = 1, last: int | None = None, dpi: int = DPI
) -> tuple[ImagePart, ...]:
    """Returns pages of a PDF as images for a model that sees, in order.

    Args:
        path: of the PDF.
        first: number of the first page, from 1.
        last: number of the last page; None: that of the file.
        dpi: resolution.

    Raises:
        DatasetError: the file is encrypted, broken, or beyond a limit, or there are
            more pages than a request can show.
    """
    try:
        changed = path.stat().st_mtime_ns
    except OSError as error:
        raise DatasetError(f"{path}: {error.strerror} (check the path).") from error
    return _images(path, changed, first, last, dpi)


@lru_cache(maxsize=CACHED_PAPERS)
def _images(
    path: Path, changed_ns: int, first: int, last: int | None, dpi: int
) -> tuple[ImagePart, ...]:
    del changed_ns  # part of the key: a file that has changed is drawn again
    cache = _PdfCache(path)
    if last is None:
        output = cache.text(PDF_LIMITS.chars)
        _refuse(path, output, PDF_LIMITS, "keep only what is to be read")
        last = len(output["pages"])
    if last - first >= VISION_PAGES:
        raise DatasetError(
            f"{path.name}: a request shows at most {VISION_PAGES} pages, not "
            f"{last - first + 1:,} (set chunk, or keep only the pages to be read)."
        )
    uris = {page: cache.get(f"{dpi} {page}") for page in range(first, last + 1)}
    if None in uris.values():
        output = _output_of_reader(
            path, PDF_LIMITS, "images", MOST_PIXELS, dpi, first, last
        )
        _refuse(path, output, PDF_LIMITS, "leave the page out")
        for page, png in output["images"]:
            uris[page] = f"{IMAGE_URI}{png}"
            cache.keep(f"{dpi} {page}", f"{IMAGE_URI}{png}")
    return tuple(ImagePart.from_uri(uri) for uri in uris.values() if uri)


class _PdfCache:
    """Cached output of the reader for a PDF, by the bytes of the file.

    A run is resumed and scored from the same papers, and reading a paper of 15 pages
    takes 0.2 s, drawing it 2 s. Errors are not cached. The folder may be deleted at any
    time.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            content = path.read_bytes()
        except OSError as error:
            raise DatasetError(f"{path}: {error.strerror} (check the path).") from error
        reader = READER.read_bytes() + version("pypdfium2").encode()
        hashes = (hashlib.sha256(data).digest() for data in (content, reader))
        self._key = hashlib.sha256(b"".join(hashes))
        self._folder = user_cache_path("siftlog", appauthor=False) / "pdf"

    def text(self, most_chars: int) -> dict[str, Any]:
        """Returns the text of the pages, or the reader's error."""
        cached = self.get(f"text {most_chars}")
        if cached is not None:
            with suppress(ValueError):
                stored: dict[str, Any] = json.loads(cached)
                return stored
        output = _output_of_reader(self._path, PDF_LIMITS, "text", most_chars)
        if "error" not in output:
            self.keep(f"text {most_chars}", json.dumps(output))
        return output

    def get(self, name: str) -> str | None:
        """Returns what is cached under a name; None: nothing."""
        try:
            return zstandard.decompress(self._file(name).read_bytes()).decode()
        except (OSError, ValueError, zstandard.ZstdError):
            return None

    def keep(self, name: str, text: str) -> None:
        """Caches a text; where that is impossible, papers are only read again."""
        file = self._file(name)
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with NamedTemporaryFile(dir=file.parent, delete=False) as written:
                written.write(zstandard.compress(text.encode()))
            Path(written.name).replace(file)

    def _file(self, name: str) -> Path:
        key = self._key.copy()
        key.update(name.encode())
        return self._folder / key.hexdigest()


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
