"""Prints the pages of a PDF as JSON: a program that runs in a separate process.

A PDF comes from anywhere, and its reader is native code: what hangs, crashes or fills
the memory does so in here. Nothing of siftlog is imported.

    pdf_pages.py text   FILE PAGES CHARACTERS SECONDS BYTES
    pdf_pages.py images FILE PAGES PIXELS     SECONDS BYTES DPI FIRST LAST
"""

from __future__ import annotations

import base64
import io
import json
import resource
import sys
from itertools import pairwise
from typing import Any

PASSWORD = 4
"""FPDF_ERR_PASSWORD: the file is encrypted."""

POINTS = 72
"""Points per inch, the unit of a page's size."""

MIDDLE = (0.35, 0.65)
"""Range of the gutter between two columns, as shares of the page's width."""

LEAST_LINES = 12
"""Lines of prose that each of two columns has at least; fewer may be a table."""

MOST_CROSSING = 0.25
"""Share of lines that may cross the gutter, such as a title and its abstract."""

PROSE = 0.5
"""Share of its column that a line of prose fills; cells of tables are shorter."""

SWITCHES = 0.5
"""Changes of column per line of the shorter column from which text is scrambled.

A page that is read by columns changes once or twice; one that is read across the gutter
changes twice per line.
"""


def main(mode: str, path: str, numbers: list[int]) -> None:
    """Print `{"pages": [...], ...}`, or `{"error": ...}`.

    The error is `encrypted`, `broken`, or what there is too much of: `pages`,
    `characters`, `pixels`.
    """
    most_pages, most, seconds, memory_bytes, *rest = numbers
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    # loaded under the limits
    import pypdfium2  # noqa: PLC0415 - see above

    try:
        document = pypdfium2.PdfDocument(path)
        if len(document) > most_pages:
            _say({"error": "pages", "n": len(document)})
        elif mode == "text":
            _say(_text(document, most))
        else:
            _say(_images(document, most, *rest))
    except pypdfium2.PdfiumError as error:
        locked = getattr(error, "err_code", None) == PASSWORD
        _say({"error": "encrypted" if locked else "broken"})


def _text(document: Any, most_chars: int) -> dict[str, object]:  # noqa: ANN401 - untyped
    """Return the text of each page, and the pages whose columns are scrambled."""
    pages: list[str] = []
    scrambled: list[int] = []
    for page in document:
        text = page.get_textpage()
        pages.append(text.get_text_bounded())
        most_chars -= len(pages[-1])
        if most_chars < 0:
            return {"error": "characters"}
        boxes = [text.get_rect(index) for index in range(text.count_rects())]
        if reads_across(boxes, page.get_width()):
            scrambled.append(len(pages))
    return {"pages": pages, "scrambled": scrambled}


def reads_across(boxes: list[tuple[float, ...]], width: float) -> bool:
    """Return whether the text of two columns is read line by line across both.

    Args:
        boxes: of pieces of text in their order: left, bottom, right, top.
        width: of the page.
    """
    gutter = _gutter(boxes, width)
    if gutter is None:
        return False
    sides: list[str] = []
    prose = {"left": 0, "right": 0}
    edges = {
        "left": gutter - min(box[0] for box in boxes),
        "right": max(box[2] for box in boxes) - gutter,
    }
    for left, _, right, _ in boxes:
        if left < gutter < right:
            continue
        side = "left" if right <= gutter else "right"
        if right - left >= PROSE * edges[side]:
            prose[side] += 1
            sides.append(side)
    least = min(prose.values())
    if least < LEAST_LINES:
        return False
    return sum(one != other for one, other in pairwise(sides)) >= SWITCHES * least


def _gutter(boxes: list[tuple[float, ...]], width: float) -> float | None:
    """Return a vertical line near the middle that few pieces of text cross."""
    first, last = (int(share * width) for share in MIDDLE)
    crossing = {
        x: sum(box[0] < x < box[2] for box in boxes) for x in range(first, last, 3)
    }
    if not crossing or not boxes:
        return None
    least = min(crossing.values())
    if least > MOST_CROSSING * len(boxes):
        return None
    candidates = [x for x, n in crossing.items() if n == least]
    return candidates[len(candidates) // 2]


def _images(
    document: Any,  # noqa: ANN401 - untyped
    most_pixels: int,
    dpi: int,
    first: int,
    last: int,
) -> dict[str, object]:
    """Return the numbers of pages, and each page as PNG in base64."""
    images = []
    for number in range(first, min(last, len(document)) + 1):
        page = document[number - 1]
        scale = dpi / POINTS
        if page.get_width() * page.get_height() * scale * scale > most_pixels:
            return {"error": "pixels", "n": number}
        image = page.render(scale=scale).to_pil().convert("RGB")
        red, green, blue = image.split()
        if red.tobytes() == green.tobytes() == blue.tobytes():
            # a third of the size
            image = red
        file = io.BytesIO()
        image.save(file, "PNG")
        png = base64.b64encode(file.getvalue()).decode()
        images.append([number, png])
    return {"images": images}


def _say(message: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(message))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], list(map(int, sys.argv[3:])))
