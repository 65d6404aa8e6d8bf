"""Writes plain PDF files: pages of lines in one font, the same bytes for the same text.

    python tests/pdf_pages.py review.txt review.pdf

makes the PDF of the sample from its text, whose pages a form feed parts.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

LINE_PT = 13
TOP_PT = 790
LEFT_PT = 60
FONT = (
    b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
)


def pdf(pages: Sequence[str]) -> bytes:
    """A PDF whose pages hold these lines."""
    streams = [_content(page) for page in pages]
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        FONT,
    ]
    for number, stream in enumerate(streams):
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] "
            f"/Resources << /Font << /F1 3 0 R >> >> "
            f"/Contents {5 + 2 * number} 0 R >>".encode(),
            _stream(stream),
        ]
    return assembled(objects)


def assembled(objects: Sequence[bytes], trailer: bytes = b"") -> bytes:
    """A PDF of numbered objects, the first of which is its catalogue."""
    file = bytearray(b"%PDF-1.4\n")
    places = []
    for number, each in enumerate(objects, start=1):
        places.append(len(file))
        file += f"{number} 0 obj\n".encode() + each + b"\nendobj\n"
    start = len(file)
    file += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    for place in places:
        file += f"{place:010} 00000 n \n".encode()
    file += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R ".encode() + trailer
    return bytes(file + f" >>\nstartxref\n{start}\n%%EOF\n".encode())


def nested(*, levels: int, calls: int) -> bytes:
    """A small PDF whose page takes for ever: each form draws the next many times."""
    call = b"/X Do\n" * calls
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
        FONT,
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources %s "
        b"/Contents 5 0 R >>" % _drawing(6),
        _stream(call),
    ]
    for level in range(levels):
        number = len(objects) + 1
        body = call if level < levels - 1 else _content("x")
        form = b"/Type /XObject /Subtype /Form /BBox [0 0 595 842] /Resources %s"
        objects.append(_stream(body, form % _drawing(number + 1)))
    return assembled(objects)


def _drawing(form: int) -> bytes:
    return b"<< /Font << /F1 3 0 R >> /XObject << /X %d 0 R >> >>" % form


def _content(page: str) -> bytes:
    lines = page.rstrip("\n").split("\n")
    shown = b"".join(b"(%s) Tj T*\n" % _escaped(line) for line in lines)
    return b"BT /F1 10 Tf %d TL %d %d Td\n%sET" % (LINE_PT, LEFT_PT, TOP_PT, shown)


def _stream(content: bytes, further: bytes = b"") -> bytes:
    head = b"<< /Length %d %s >>" % (len(content), further)
    return b"%s\nstream\n%s\nendstream" % (head, content)


def _escaped(line: str) -> bytes:
    for mark in "\\()":
        line = line.replace(mark, f"\\{mark}")
    return line.encode("cp1252")


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:3])
    target.write_bytes(pdf(source.read_text("utf-8").split("\f")))
