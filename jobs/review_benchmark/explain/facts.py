"""What is known of a review and its studies before any model spoke."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.review_benchmark.review import Review, TruthPaper
from jobs.review_benchmark.settings import Settings
from jobs.text import NONE, WIDTH, cut, hanging_lines, one_line


def review_facts(review: Review, settings: Settings) -> Iterator[str]:
    """Title, question and years."""
    yield from hanging_lines("title      ", one_line(review.title))
    yield from hanging_lines("question   ", one_line(review.question))
    years = NONE if review.date_range is None else "{} to {}".format(*review.date_range)
    is_free = review.date_range is not None and not settings.use_date_range
    yield f"years      {years}{', not used' if is_free else ''}"


def study_line(index: int, paper: TruthPaper) -> str:
    """A study of a review on one line, with its place from 0 as matches.csv has it."""
    name = f"{paper.ref_id}: " if paper.ref_id else ""
    return cut(f"  {index}  {one_line(name + (paper.title or paper.name))}", WIDTH)
