"""A report in a real browser: on a phone, and on paper."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import pypdfium2

from jobs.kit.report.page import write
from runner.score.notable import NotableAnswers, NotableItem
from runner.scorecard import Finding
from tests.browsers import browsing, needs_browser
from tests.jobs.kit.report.reported import CARD, REPORTED, written
from tests.replacing import replace

PHONE = 390


def report(folder: Path) -> str:
    """The address of a report with more items and findings than a page of paper."""
    written(folder)
    findings = (
        Finding(code="c", severity="warn", where=f"file {n}", message="A remark. " * 9)
        for n in range(20)
    )
    items = (
        NotableItem(
            key=f"key{n}",
            title="A title that is long enough for a second line of paper " * 2,
            stage="ask",
            part="",
            reasons=(f"reason{n}",),
            expected="",
            prompt="the prompt",
            is_sent=True,
            replies=(),
            omitted=0,
        )
        for n in range(20)
    )
    card = replace(CARD, findings=(*CARD.findings, *findings))
    notable = NotableAnswers(items=tuple(items), counts=(("wrong", 20),))
    write(folder, replace(REPORTED, scorecard=card, notable=notable))
    return (folder / "report.html").as_uri()


def printed_pages(pdf: bytes) -> list[str]:
    """The text of each page."""
    with pypdfium2.PdfDocument(pdf) as document:
        return [page.get_textpage().get_text_bounded() for page in document]


async def seen(folder: Path, url: str) -> tuple[list[Any], int, list[str]]:
    async with browsing(folder) as (page,):
        await page.resize(PHONE, 800, is_touch=True)
        await page.open(url)
        await page.look("document.querySelectorAll('details').forEach(d => d.open = 1)")
        widths = "[i.currentSrc != i.src, i.width, i.naturalWidth]"
        images = await page.look(f"[...document.images].map(i => {widths})")
        width = await page.look("document.documentElement.scrollWidth")
        await page.open(url)
        pdf = await page.call("Page.printToPDF", preferCSSPageSize=True)
        return images, width, printed_pages(base64.b64decode(pdf["data"]))


@needs_browser
def test_a_report_can_be_read_on_a_phone_and_on_paper(tmp_path: Path) -> None:
    url = report(tmp_path / "scoring")
    images, width, pages = asyncio.run(seen(tmp_path, url))
    assert width == PHONE
    (is_narrow, shown, natural), *others = images
    assert is_narrow
    assert shown == natural < PHONE
    # a wide figure scrolls: its letters are as large as on paper
    assert all(not changed and own == true for changed, own, true in others)

    paper = "\n".join(pages)
    assert "Tables\n" not in paper.replace("\r", "")
    assert "They are but four." in paper
    assert "Bars and their parts." in paper
    assert "the prompt" not in paper
    first = next(text for text in pages if "Findings" in text)
    assert "A leak." in first
    for n in range(20):
        (holder,) = (text for text in pages if f". key{n}\r" in text)
        assert f"reason{n}" in holder
