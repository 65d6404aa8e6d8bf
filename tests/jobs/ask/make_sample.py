"""Writes the two PDF files of the sample: two pages each, with a text layer.

    python tests/jobs/ask/make_sample.py jobs/ask/sample/papers

The files are built by hand from PDF objects, so that the bytes are the same each time.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

LINE_CHARS = 84

PAPERS = {
    "melatonin-shift.pdf": (
        "Melatonin before day sleep in night-shift nurses: a randomised trial",
        """Abstract

        Background. Nurses on night shifts sleep poorly during the day. We tested
        whether melatonin lengthens day sleep.

        Methods. In this randomised controlled trial, 64 nurses of two hospitals were
        enrolled between March 2016 and May 2017. They took melatonin or placebo
        before day sleep on ten days. Participants and assessors were blinded.

        Results. Day sleep was longer with melatonin by 23 minutes (95% CI 9 to 37).

        Registration. The trial was registered before the first participant.""",
        """Methods

        Participants took 3 mg of melatonin 30 minutes before going to bed. Sleep was
        recorded with wrist actigraphy and with a diary.

        Results

        Of the 64 nurses enrolled, 59 completed the trial. Headache was reported by
        four nurses in the melatonin group and by three in the placebo group.

        Discussion

        The effect is small but useful. A longer trial should follow.""",
    ),
    "iron-runners.pdf": (
        "Oral iron in female distance runners with low ferritin",
        """Abstract

        Objective. To examine whether oral iron improves running performance.

        Design. Randomised controlled trial, double blind.

        Participants. A total of 48 female runners with low ferritin were enrolled at
        one sports clinic in 2019.

        Intervention. Ferrous sulphate or placebo for eight weeks.

        Main outcome. Time over 5 km. It did not differ between the groups.""",
        """Methods

        The iron group received 65 mg of elemental iron once daily. Ferritin was
        measured at baseline and after eight weeks.

        Results

        Ferritin rose in the iron group. Constipation and nausea were the most common
        adverse events.

        Conclusion

        Oral iron raised ferritin, but running time was unchanged.""",
    ),
}


def _stream(lines: list[str]) -> bytes:
    escaped = [
        line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
        for line in lines
    ]
    shown = "\n".join(f"({line}) Tj T*" for line in escaped)
    return f"BT /F1 10 Tf 14 TL 60 770 Td\n{shown}\nET".encode("ascii")


def _lines(text: str) -> list[str]:
    paragraphs = textwrap.dedent(f"        {text}").split("\n\n")
    lines: list[str] = []
    for paragraph in paragraphs:
        lines += [*textwrap.wrap(" ".join(paragraph.split()), LINE_CHARS), ""]
    return lines


def pdf(title: str, *pages: str) -> bytes:
    """The bytes of a PDF with one text stream a page."""
    streams = [
        _stream([title, "", *_lines(page)] if number == 0 else _lines(page))
        for number, page in enumerate(pages)
    ]
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(streams)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(streams)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, stream in enumerate(streams):
        objects += [
            (
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources "
                f"<< /Font << /F1 3 0 R >> >> /Contents {5 + 2 * number} 0 R >>"
            ).encode(),
            b"<< /Length %d >>\nstream\n%b\nendstream" % (len(stream), stream),
        ]
    file, offsets = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        offsets.append(len(file))
        file += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    return (
        file
        + (
            f"xref\n0 {size}\n0000000000 65535 f \n{table}"
            f"trailer << /Size {size} /Root 1 0 R >>\nstartxref\n{len(file)}\n%%EOF\n"
        ).encode()
    )


if __name__ == "__main__":
    for name, content in PAPERS.items():
        (Path(sys.argv[1]) / name).write_bytes(pdf(*content))
