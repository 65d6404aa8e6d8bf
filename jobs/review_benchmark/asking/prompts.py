"""What a prompt shows: reviews, papers and conclusions as blocks between marks.

The wording around them is in `prompts.toml`. The review comes first, so that a
provider's prompt cache can reuse it for all its papers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from jobs.chat import data_block
from jobs.review_benchmark.database.paper import Paper
from jobs.review_benchmark.review import PICO, Review
from runner.messages import TextPart


def review_part(
    review: Review, *, title: bool = False, criteria: bool = True
) -> TextPart:
    """What a review asks for; a provider's cache may end after it.

    Args:
        review: the review.
        title: whether its title is told.
        criteria: whether its criteria are.
    """
    lines = [*_question(review, title=title)]
    if criteria:
        lines += (("Inclusion criterion", each) for each in review.inclusion)
        lines += (("Exclusion criterion", each) for each in review.exclusion)
    return TextPart(text=data_block("review", _listed(lines)), cache=True)


def plan_part(queries: int, years: tuple[int, int] | None) -> TextPart:
    """How many queries are wanted, and of which years papers are searched."""
    lines = [("Queries", f"at most {queries}")]
    if years is not None:
        lines.append(("Years", f"{years[0]} to {years[1]}"))
    return TextPart(text=data_block("search", _listed(lines)))


def paper_part(paper: Paper, *, seed: str) -> TextPart:
    """One paper; *seed* is the task's key, from which the marks come."""
    return TextPart(text=data_block("paper", _listed(_paper(paper)), seed=seed))


def papers_part(papers: Sequence[Paper]) -> TextPart:
    """Several papers, each between marks of its own."""
    return TextPart(
        text="".join(data_block("paper", _listed(_paper(paper))) for paper in papers)
    )


def conclusions_part(first: str, second: str) -> TextPart:
    """Two conclusions, called A and B."""
    lines = [("A", first), ("B", second)]
    return TextPart(text=data_block("conclusions", _listed(lines)))


def _question(review: Review, *, title: bool) -> Iterator[tuple[str, str]]:
    yield "Question", review.question
    if title:
        yield "Title", review.title
    if review.pico is not None:
        for name in PICO:
            yield name.capitalize(), getattr(review.pico, name)


def _paper(paper: Paper) -> Iterator[tuple[str, str]]:
    yield "Title", paper.title.strip() or "(no title)"
    if paper.year is not None:
        yield "Year", str(paper.year)
    yield "Abstract", paper.abstract.strip() or "(no abstract)"


def _listed(lines: Iterable[tuple[str, str]]) -> str:
    """A field a line, without the empty ones; a line break must not add another."""
    flat = ((label, " ".join(text.split())) for label, text in lines)
    return "\n".join(f"{label}: {text}" for label, text in flat if text)
