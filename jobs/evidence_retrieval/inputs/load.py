"""Loads all inputs of a run, complete and validated before anything is planned."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.evidence_retrieval.dataset import Criterion, Dataset, Gold, Post, query_key
from jobs.evidence_retrieval.inputs.configs import read_configs
from jobs.evidence_retrieval.inputs.criteria import read_criteria
from jobs.evidence_retrieval.inputs.folds import assign_folds, read_folds
from jobs.evidence_retrieval.inputs.judgements import read_gold
from jobs.evidence_retrieval.inputs.posts import read_posts
from jobs.evidence_retrieval.inputs.stored import read_stored
from jobs.evidence_retrieval.settings import Settings
from jobs.evidence_retrieval.wording import WORDING
from jobs.inputs.rows import InputFindings
from jobs.inputs.sampling import draw_sample, report_sample
from runner.errors import DatasetError, UsageError
from runner.job import InputFile

if TYPE_CHECKING:
    from jobs.evidence_retrieval.gating.stored import StoredGate


SAMPLE = WORDING.file.with_name("sample")

DATA = {
    "posts": "posts.csv",
    "sentences": "sentences.jsonl",
    "criteria": "criteria.json",
    "gold": "gold.csv",
    "folds": "folds.csv",
}
"""The settings that name data, and the file of the sample behind each."""


FILES = (*DATA, "pipeline", "against", "apply_gate", "prompts")
"""The settings whose files are read."""


def with_sample(settings: Settings) -> Settings:
    """The shipped sample where no data is named; the given object otherwise."""
    if any(getattr(settings, name) is not None for name in DATA):
        return settings
    return settings.model_copy(
        update={name: SAMPLE / file for name, file in DATA.items()}
    )


def require(settings: Settings) -> None:
    """Refuse settings that a run cannot start from.

    Raises:
        UsageError: no posts are named, or no criteria.
    """
    if settings.posts is None and settings.sentences is None:
        raise UsageError(
            "A run needs --posts or --sentences; name no data at all to run on the "
            "shipped sample."
        )
    if settings.criteria is None:
        raise UsageError("A run needs --criteria, the file of what posts are read for.")


def inputs(settings: Settings) -> tuple[InputFile, ...]:
    """The files that `load` reads under these settings."""
    named = ((name, getattr(settings, name)) for name in FILES)
    return tuple(InputFile(setting=name, path=path) for name, path in named if path)


def load(settings: Settings) -> Dataset:
    """Read and validate the inputs that are named.

    An imported run may name none: its answers carry their own truth.

    Raises:
        DatasetError: an input is off; names file, line and column.
    """
    noticed = InputFindings()
    configs = read_configs(settings)
    every_post, pools = read_posts(settings, noticed)
    criteria = (
        read_criteria(settings.criteria, noticed, allow_ragged=settings.allow_ragged)
        if settings.criteria
        else ()
    )
    if settings.batch == "post":
        _refuse_ambiguous(every_post, criteria)
    gold = read_gold(settings, every_post, criteria, pools, noticed)
    folds = read_folds(settings, every_post, noticed)
    if every_post and gold is not None and folds is None:
        # a run that cannot be scored must not start
        ids = (post.id for post in every_post)
        assigned = assign_folds(ids, settings.n_folds, settings.seed)
        # of a sample they are kept: assigning its posts alone gives other folds
        folds = assigned if settings.limit else None
    posts = _sample(every_post, gold, folds, settings)
    report_sample(noticed, posts, every_post, "post", "fold")
    return Dataset(
        settings=settings,
        prompts=WORDING.book(settings.prompts),
        posts=posts,
        criteria=criteria,
        gold=gold,
        folds=folds,
        configs=configs,
        stored=read_stored(settings.against) if settings.against else None,
        findings=noticed.findings(),
        gates=_gates(settings.apply_gate),
    )


def _sample(
    posts: tuple[Post, ...],
    gold: Gold | None,
    folds: Mapping[str, str] | None,
    settings: Settings,
) -> tuple[Post, ...]:
    """The posts of a run: folds, and posts with evidence, keep their share."""
    positive = set() if gold is None else {post for post, _ in gold.evidence}
    return draw_sample(
        posts,
        settings.limit,
        key=lambda post: post.id,
        strata=(
            lambda post: None if folds is None else folds[post.id],
            lambda post: post.id in positive,
        ),
    )


def _refuse_ambiguous(posts: tuple[Post, ...], criteria: tuple[Criterion, ...]) -> None:
    """Refuse a post that is called like a query, where whole posts are asked about.

    The key of a task would then stand for both.
    """
    ids = {post.id for post in posts}
    for post in posts:
        for criterion in criteria:
            key = query_key(post.id, criterion.id)
            if key in ids:
                raise DatasetError(
                    f"Post {key} is called like criterion {criterion.id} of post "
                    f"{post.id}, which batch=post cannot tell apart (rename one, or "
                    "use --batch query)."
                )


def _gates(path: Path | None) -> tuple[StoredGate, ...]:
    if path is None:
        return ()
    # with the numerical libraries that few runs need
    from jobs.evidence_retrieval.gating.stored import decode  # noqa: PLC0415

    try:
        return decode(path.read_text("utf-8"))
    except OSError as error:
        raise DatasetError(f"{path}: {error.strerror} (check the path).") from error
    except ValueError as error:
        raise DatasetError(f"{path.name}: {error}") from error
