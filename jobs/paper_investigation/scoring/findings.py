"""What a reader of the scores should know before believing them."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.paper_investigation.tallies.survey import Survey
from jobs.paper_investigation.tallies.tally import Tally
from runner.scorecard import Finding

SHARE_OF_NOTE = 0.02
"""Cut or empty replies beyond this share are worth a warning, below it a remark."""


def findings(survey: Survey, *, imported: bool, has_bench: bool) -> Iterator[Finding]:
    """Cut and empty replies, gaps against the plan, facts that do not hold.

    Args:
        survey: what was counted.
        imported: whether the answers were made elsewhere.
        has_bench: whether the truth comes from a bench, whose own oddities were
            noticed when it was read.
    """
    for model, tally in survey.tallies.items():
        yield from _replies(model, tally)
        yield from _plan(model, tally, imported=imported)
        merged = tally.papers.total(lambda paper: paper.merged)
        if merged and not has_bench:
            yield Finding(
                code="merged_variants",
                severity="info",
                where=model,
                message=f"{merged} spellings in the truth are one variant with an "
                "earlier one and count once.",
                n=merged,
            )
    yield from _agreement(survey)


def _replies(model: str, tally: Tally) -> Iterator[Finding]:
    replies = tally.replies
    for code, n, message in (
        (
            "empty_replies",
            replies.empty,
            (
                "replies are empty, as when reasoning uses up the output limit; "
                "raise max_tokens_reasoning and name the model in reasoning_models."
            ),
        ),
        (
            "cut_replies",
            replies.cut,
            (
                "replies were cut at the output limit; raise max_tokens_extract or "
                "max_tokens_question."
            ),
        ),
        (
            "refused_replies",
            replies.refused,
            "replies were refused or filtered by the provider; they count as wrong.",
        ),
    ):
        if n:
            is_many = n > SHARE_OF_NOTE * replies.received
            yield Finding(
                code=code,
                severity="warn" if is_many else "info",
                where=model,
                message=f"{n} of {replies.received} {message}",
                n=n,
            )


def _plan(model: str, tally: Tally, *, imported: bool) -> Iterator[Finding]:
    if tally.replies.unasked:
        yield Finding(
            code="questions_not_asked",
            severity="warn",
            where=model,
            message=f"{tally.replies.unasked} questions that these settings ask for "
            "are not in the run and are not counted; resume it to ask them.",
            n=tally.replies.unasked,
        )
    if tally.replies.stale:
        yield Finding(
            code="unused" if imported else "stale",
            severity="info",
            where=model,
            message=f"{tally.replies.stale} stored answers are not asked for under "
            "these settings and are not used.",
            n=tally.replies.stale,
        )


def _agreement(survey: Survey) -> Iterator[Finding]:
    chosen = survey.agreements[0]
    wrong = sum(each.compared - each.agreeing for each in chosen.facts.values())
    if wrong:
        compared = sum(each.compared for each in chosen.facts.values())
        first = chosen.differences[0]
        yield Finding(
            code="differs_from_file",
            severity="info",
            where="import",
            message=f"{wrong} of {compared} facts stated by the imported files come "
            f"out otherwise under profile {chosen.profile}; see differences.csv.",
            n=wrong,
            example=f"{first.model} {first.where}: {first.fact}",
        )
    if survey.contradictions:
        yield Finding(
            code="recall_contradicts_lists",
            severity="warn",
            where="import",
            message=f"{len(survey.contradictions)} records state a recall that their "
            "own lists give under no profile.",
            n=len(survey.contradictions),
            example=survey.contradictions[0],
        )
