"""Plans the tasks of a run and builds their requests.

Pure and lazy; labels and kinds are not used. The plan of a run is derived again from
data and stored replies when it is resumed or scored, so the same inputs must yield the
same specs in the same order. After an unreadable reply or a failed call, a record goes
on to the next stage: only a decision ends it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from jobs.kit.chat import chat_request, is_longer_than, most_tokens
from jobs.screening import prompts
from jobs.screening.data import (
    REASON_CODES,
    ArticleText,
    Criteria,
    ScreeningJudgement,
    ScreeningRecord,
)
from jobs.screening.inputs import ScreeningDataset
from jobs.screening.prompts import (
    criteria_to_context,
    describe_from_abstract,
    describe_review,
)
from jobs.screening.settings import StageName
from runner.job import Answer, Task, TaskSpec
from runner.messages import ChatRequest, TextPart


def request(dataset: ScreeningDataset, task: Task) -> ChatRequest:
    """Build the request of *task*; raise `KeyError` if the data lost its item."""
    match task.stage:
        case "criteria":
            return criteria(dataset, task.key)
        case "title" | "abstract" | "fulltext" as stage:
            return screen(dataset, stage, dataset.record(task.key), task.context)
        case _:
            raise KeyError(task.stage)


def criteria(dataset: ScreeningDataset, review: str) -> ChatRequest:
    """Build the request for the criteria of a review."""
    part = prompts.review_part(describe_from_abstract(dataset.review(review)).lines)
    messages = dataset.prompts.messages("criteria", review=part)
    return chat_request(dataset.settings, messages, prompts.CRITERIA)


def screen(
    dataset: ScreeningDataset,
    stage: StageName,
    record: ScreeningRecord,
    context: str | None,
) -> ChatRequest:
    """Build the request that screens a paper against the review's criteria.

    Args:
        dataset: texts and settings.
        stage: the stage, which selects the text of the paper.
        record: the review and the paper.
        context: a model's criteria, if there are any.
    """
    settings = dataset.settings
    paper = prompts.paper_part(
        stage,
        dataset.paper(record.paper),
        dataset.fulltext(record.paper) if stage == "fulltext" else "",
        seed=f"{stage}/{record.key}",
        id_=record.paper if settings.show_ids else "",
        shows_year=settings.show_year,
    )
    return _screen(dataset, stage, record.review, context, paper)


def _screen(
    dataset: ScreeningDataset,
    stage: StageName,
    review: str,
    context: str | None,
    paper: TextPart,
) -> ChatRequest:
    """Build the request about one paper of a review."""
    settings, parts = dataset.settings, dataset.review_parts
    if (review, context) not in parts:
        description = describe_review(settings, dataset.review(review), context)
        parts[review, context] = prompts.review_part(
            description.lines, review if settings.show_ids else ""
        )
    messages = dataset.prompts.messages(
        stage,
        reason_codes=_REASON_CODES,
        review=parts[review, context],
        paper=paper,
    )
    return chat_request(settings, messages, prompts.SCREEN)


def _is_surely_short(
    dataset: ScreeningDataset,
    stage: StageName,
    record: ScreeningRecord,
    context: str | None,
) -> bool:
    """Return whether the lengths of its texts alone keep a prompt within the limit.

    A prompt is at most as long as one about a paper without texts plus those texts,
    because they only lose blanks.
    """
    known = dataset.prompt_lengths
    if (stage, record.review, context) not in known:
        short, long = (
            most_tokens(
                _screen(
                    dataset,
                    stage,
                    record.review,
                    context,
                    prompts.paper_part(stage, text, "", seed="", id_=""),
                )
            )
            for text in (ArticleText(title="-"), ArticleText(title="-" * (1 + _PROBE)))
        )
        # a user's prompt may have the paper more than once
        known[stage, record.review, context] = short, (long - short) // _PROBE
    short, times = known[stage, record.review, context]
    text = dataset.paper(record.paper)
    texts = (text.title, text.abstract, record.paper, str(text.year))
    most = short + times * (sum(map(len, texts)) + _LABELS)
    return most <= dataset.settings.max_prompt_tokens


_REASON_CODES: Final = ", ".join(REASON_CODES)

_PROBE: Final = 1_000
"""Number of characters added to count how often a prompt has the paper."""

_LABELS: Final = 64
"""Maximum number of characters of the labels of a paper's texts."""


def planned_stages(dataset: ScreeningDataset) -> frozenset[str]:
    """Return the stages that the settings select."""
    settings = dataset.settings
    first = {"criteria"} if settings.criteria_source == "llm" else set()
    return frozenset({*first, *settings.stages})


def plan(dataset: ScreeningDataset) -> Iterator[TaskSpec]:
    """Yield first-stage specs in the order of the set: of reviews, or of records.

    Impossible requests are planned as skipped, with the reason: `no_criteria`,
    `no_fulltext` or `too_long`.
    """
    settings = dataset.settings
    if settings.criteria_source == "llm":
        for review in dataset.screened:
            # a record key has a colon, a review key does not, so no group is both
            is_long = is_longer_than(
                criteria(dataset, review), settings.max_prompt_tokens
            )
            yield TaskSpec(
                stage="criteria",
                key=review,
                group=review,
                skip="too_long" if is_long else None,
            )
            if is_long:
                # nothing follows a skip, so its records are planned, with the same
                # reason
                yield from _screened(dataset, review, None)
        return
    for review in dataset.screened:
        yield from _screened(dataset, review, None)


def titles(dataset: ScreeningDataset) -> Iterator[tuple[str, str]]:
    """Yield the titles of the reviews and records of the set."""
    validation_set = dataset.validation_set
    if validation_set is None:
        return
    for review in validation_set.reviews:
        yield review.id, review.text.title
    for record in validation_set.records:
        text = validation_set.papers.get(record.paper)
        yield record.key, "" if text is None else text.title


def follow_up(
    dataset: ScreeningDataset, group: tuple[Answer, ...]
) -> Iterator[TaskSpec]:
    """Yield the follow-ups of an answer, or of a failed call.

    The criteria of a review are followed by the first stage of its records; a stage by
    the next one, which is skipped as `excluded_earlier` if the record has ended.
    """
    (answer,) = group
    task = answer.task
    if answer.skip is not None or answer.is_open:
        return
    if task.stage == "criteria":
        parsed = answer.parsed
        context = criteria_to_context(parsed) if isinstance(parsed, Criteria) else None
        yield from _screened(dataset, task.key, context)
        return
    record, stage = dataset.find(task.key), next_stage(dataset, task.stage)
    if record is not None and stage is not None:
        has_ended = ends_early(dataset, task.stage, answer.parsed)
        yield _spec(dataset, stage, record, task.context, has_ended=has_ended)


def ends_early(dataset: ScreeningDataset, stage: str, parsed: object) -> bool:
    """Return whether an answer ends its record before the next stage.

    A title needs a low probability to end it: without a probability it ends nothing,
    unless every exclusion does.
    """
    if not isinstance(parsed, ScreeningJudgement) or parsed.decision != "exclude":
        return False
    if stage != "title":
        return True
    p = 1.0 if parsed.p_include is None else parsed.p_include
    return p <= dataset.settings.title_exclude_below


def next_stage(dataset: ScreeningDataset, stage: str) -> StageName | None:
    """Return the next stage, or None after the last one."""
    stages = dataset.settings.stages
    later = stages[[*stages].index(stage) + 1 :] if stage in [*stages] else ()
    return later[0] if later else None


def _screened(
    dataset: ScreeningDataset, review: str, context: str | None
) -> Iterator[TaskSpec]:
    first = dataset.settings.stages[0]
    for record in dataset.records_of(review):
        yield _spec(dataset, first, record, context)


def _spec(
    dataset: ScreeningDataset,
    stage: StageName,
    record: ScreeningRecord,
    context: str | None,
    *,
    has_ended: bool = False,
) -> TaskSpec:
    skip = "excluded_earlier" if has_ended else _skip(dataset, stage, record, context)
    return TaskSpec(
        stage=stage,
        key=record.key,
        skip=skip,
        context=context,
        group=record.key if next_stage(dataset, stage) else None,
    )


def _skip(
    dataset: ScreeningDataset,
    stage: StageName,
    record: ScreeningRecord,
    context: str | None,
) -> str | None:
    settings = dataset.settings
    if settings.criteria_source == "file":
        criteria = dataset.review(record.review).criteria
        if criteria is None or criteria.is_empty:
            return "no_criteria"
    if stage == "fulltext" and not dataset.has_fulltext(record.paper):
        return "no_fulltext"
    if stage != "fulltext" and _is_surely_short(dataset, stage, record, context):
        return None
    request = screen(dataset, stage, record, context)
    return "too_long" if is_longer_than(request, settings.max_prompt_tokens) else None
