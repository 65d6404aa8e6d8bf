"""Loads all inputs of a run, validated before anything is planned."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from jobs.evidence_retrieval.data import (
    WORDING,
    Criterion,
    EvidenceDataset,
    Post,
    query_key,
)
from jobs.evidence_retrieval.pipeline import read_configs
from jobs.evidence_retrieval.posts import read_gold, read_posts
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.inputs.cells import Filled, Text
from jobs.kit.inputs.files import read_json, read_table
from jobs.kit.inputs.rows import (
    InputFindings,
    RowModel,
    RowSource,
    Spelled,
    columns_of,
)
from jobs.kit.inputs.sampling import draw_sample, report_sample
from runner.errors import DatasetError, UsageError
from runner.job import InputFile

if TYPE_CHECKING:
    from jobs.evidence_retrieval.predictions.fitted_gate import StoredGate


def read_stored(path: Path) -> Mapping[str, Any]:
    """Read a `summary.json`, which must be an object.

    Raises:
        DatasetError: the file cannot be read, is not JSON, or is not an object.
    """
    try:
        content = json.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise DatasetError(f"{path}: {error.strerror} (check the path).") from error
    except UnicodeDecodeError as error:
        raise DatasetError(f"{path.name}: not UTF-8 text (save it as such).") from error
    except json.JSONDecodeError as error:
        raise DatasetError(
            f"{path.name} line {error.lineno}: not valid JSON: {error.msg} "
            "(correct it)."
        ) from error
    if not isinstance(content, dict):
        raise DatasetError(
            f"{path.name}: not an object of results (give the summary.json of a run)."
        )
    return content


_DIGITS = re.compile(r"([0-9]+)")


def natural_order(ids: Iterable[str]) -> tuple[str, ...]:
    """Return distinct ids with their numbers in numeric order.

    >>> natural_order(["A.10", "A.2", "A.1", "A.2"])
    ('A.1', 'A.2', 'A.10')
    """
    return tuple(sorted(set(ids), key=_natural))


class _CriterionRow(RowModel):
    criterion_id: Annotated[Filled, Spelled("id")]
    text: Annotated[Filled, Spelled("description")]
    name: Text = ""


def read_criteria(
    path: Path, findings: InputFindings, *, allow_ragged: bool = False
) -> tuple[Criterion, ...]:
    """Read the criteria in file order, which is the order of display.

    Raises:
        DatasetError: a criterion has no text, occurs twice or has an id with "/", or
            there is none.
    """
    if ".json" in path.suffixes:
        rows = _json_rows(path)
    else:
        rows = read_table(
            path, _CriterionRow, findings=findings, allow_ragged=allow_ragged
        )
    criteria: dict[str, Criterion] = {}
    for row in rows:
        criterion = Criterion(id=row.criterion_id, text=row.text, name=row.name)
        if "/" in criterion.id:
            raise row.error(
                f'criterion_id {criterion.id} holds "/", which parts post and '
                "criterion in the key of a query (rename it)"
            )
        if not criterion.text.strip():
            raise row.error(f"criterion {criterion.id} has no text (add a description)")
        if criterion.id in criteria:
            raise row.error(f"criterion {criterion.id} occurs twice (remove one)")
        criteria[criterion.id] = criterion
    if not criteria:
        raise DatasetError(f"{path.name}: no criterion in it (at least one is needed).")
    return tuple(criteria.values())


def _json_rows(path: Path) -> Iterator[_CriterionRow]:
    """Yield the entries of `{"criteria": [...]}`, numbered from 1 like lines."""
    value = read_json(path)
    entries: Any = value.get("criteria") if isinstance(value, dict) else None
    if not isinstance(entries, list):
        raise DatasetError(
            f'{path.name}: no list of criteria (an object {{"criteria": [...]}} is '
            "expected)."
        )
    source = RowSource(file=path.name, unit="criterion")
    spellings = columns_of(_CriterionRow).spellings
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, dict):
            raise DatasetError(
                f"{path.name} criterion {number}: not an object with id and text "
                "(write both)."
            )
        fields = {spellings.get(key, key): cell for key, cell in entry.items()}
        yield _CriterionRow.at(source, number, fields)


def _natural(id_: str) -> tuple[tuple[str, int], ...]:
    """Split an id into text and numbers; the id itself separates 1 from 01."""
    parts = _DIGITS.split(id_)
    pairs = zip(parts[::2], (*map(int, parts[1::2]), -1), strict=True)
    return (*pairs, (id_, 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldSize:
    """Size of a fold's test data."""

    fold: str
    posts: int
    queries: int  #: posts times criteria
    positives: int | None  #: None: there is no gold label


def assign_folds(post_ids: Iterable[str], n_folds: int, seed: int) -> dict[str, str]:
    """Assign folds "0" to "n-1" by post, independent of the order of posts.

    Distinct ids in ascending order as text, shuffled by NumPy's default generator, and
    cut into blocks of n div n_folds posts; the last block takes the remainder too.

    Raises:
        DatasetError: there are fewer posts than folds.
    """
    posts = sorted(set(post_ids))
    if len(posts) < n_folds:
        raise DatasetError(
            f"{len(posts)} posts cannot be cut into {n_folds} folds (use more posts, "
            "or a smaller --n-folds)."
        )
    shuffled = np.random.default_rng(seed).permutation(len(posts)).tolist()
    size = len(posts) // n_folds
    return {
        posts[index]: str(min(rank // size, n_folds - 1))
        for rank, index in enumerate(shuffled)
    }


class _FoldRow(RowModel):
    post_id: Filled
    fold_id: Filled


def read_folds(
    settings: EvidenceSettings, posts: tuple[Post, ...], findings: InputFindings
) -> Mapping[str, str] | None:
    """Read the folds in a file, by post; None without a file.

    A post may occur in several rows, as it does in a table of queries.

    Without named posts, those of the file are used.

    Raises:
        DatasetError: a post is in two folds, or in none, or there is only one fold.
    """
    if settings.folds is None:
        return None
    rows = read_table(
        settings.folds,
        _FoldRow,
        findings=findings,
        allow_ragged=settings.allow_ragged,
    )
    folds: dict[str, str] = {}
    for row in rows:
        post, fold = row.post_id, row.fold_id
        if folds.setdefault(post, fold) != fold:
            raise row.error(
                f"post {post} is in fold {fold} here and in {folds[post]} above "
                "(a post belongs to one fold)"
            )
    name = settings.folds.name
    for post_ in posts:
        if post_.id not in folds:
            raise DatasetError(
                f"{name}: no fold for post {post_.id} (add a row, or leave out --folds "
                "to have folds drawn)."
            )
    used = {post_.id: folds[post_.id] for post_ in posts} or folds
    if len(set(used.values())) == 1:
        raise DatasetError(
            f"{name}: all posts are in one fold (at least two are needed)."
        )
    return used


def fold_sizes(
    dataset: EvidenceDataset, folds: Mapping[str, str]
) -> tuple[FoldSize, ...]:
    """Return the size of each fold, in the natural order of their names."""
    gold, n_criteria = dataset.gold, len(dataset.criteria)
    posts = Counter(folds[post.id] for post in dataset.posts)
    positives = Counter(
        folds[post.id]
        for post in dataset.posts
        for criterion in dataset.criteria
        if gold is not None and (post.id, criterion.id) in gold.evidence
    )
    return tuple(
        FoldSize(
            fold=fold,
            posts=posts[fold],
            queries=posts[fold] * n_criteria,
            positives=None if gold is None else positives[fold],
        )
        for fold in natural_order(posts)
    )


SAMPLE = WORDING.file.with_name("sample")

DATA = {
    "posts": "posts.csv",
    "sentences": "sentences.jsonl",
    "criteria": "criteria.json",
    "gold": "gold.csv",
    "folds": "folds.csv",
}
"""Settings that name data, with the file of the sample for each."""


FILES = (*DATA, "pipeline", "against", "apply_gate", "prompts")
"""Settings whose files are read."""


def with_sample(settings: EvidenceSettings) -> EvidenceSettings:
    """Return settings with the shipped sample if they name no data."""
    if any(getattr(settings, name) is not None for name in DATA):
        return settings
    return settings.model_copy(
        update={name: SAMPLE / file for name, file in DATA.items()}
    )


def require(settings: EvidenceSettings) -> None:
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


def inputs(settings: EvidenceSettings) -> tuple[InputFile, ...]:
    """Return the files that `load` reads under these settings."""
    named_paths = ((name, getattr(settings, name)) for name in FILES)
    return tuple(
        InputFile(setting=name, path=path) for name, path in named_paths if path
    )


def load(settings: EvidenceSettings) -> EvidenceDataset:
    """Read and validate the named inputs.

    An imported run may name none: its answers have labels.

    Raises:
        DatasetError: an input is invalid; names file, line and column.
    """
    findings = InputFindings()
    configs = read_configs(settings)
    every_post, pools = read_posts(settings, findings)
    criteria = (
        read_criteria(settings.criteria, findings, allow_ragged=settings.allow_ragged)
        if settings.criteria
        else ()
    )
    if settings.batch == "post":
        _refuse_ambiguous(every_post, criteria)
    gold = read_gold(settings, every_post, criteria, pools, findings)
    folds = read_folds(settings, every_post, findings)
    if every_post and gold is not None and folds is None:
        # a run that cannot be scored must not start
        ids = (post.id for post in every_post)
        assigned = assign_folds(ids, settings.n_folds, settings.seed)
        # a sample keeps them: assigning only its posts would give other folds
        folds = assigned if settings.limit or settings.judged_only else None
    if settings.judged_only and gold is not None:
        every_post = tuple(post for post in every_post if post.id in gold.posts)
    positive = set() if gold is None else {post for post, _ in gold.evidence}
    posts = draw_sample(
        every_post,
        settings.limit,
        key=lambda post: post.id,
        strata=(
            lambda post: None if folds is None else folds[post.id],
            lambda post: post.id in positive,
        ),
    )
    report_sample(findings, posts, every_post, "post", "fold")
    return EvidenceDataset(
        settings=settings,
        prompts=WORDING.book(settings.prompts),
        posts=posts,
        criteria=criteria,
        gold=gold,
        folds=folds,
        configs=configs,
        stored=read_stored(settings.against) if settings.against else None,
        findings=findings.findings(),
        gates=_gates(settings.apply_gate),
    )


def _refuse_ambiguous(posts: tuple[Post, ...], criteria: tuple[Criterion, ...]) -> None:
    """Refuse a post with the name of a query, if whole posts are requested.

    A task key would be ambiguous otherwise.
    """
    ids = {post.id for post in posts}
    for post in posts:
        for criterion in criteria:
            key = query_key(post.id, criterion.id)
            if key in ids:
                raise DatasetError(
                    f"Post {key} has the same key as criterion {criterion.id} "
                    f"of post {post.id}, which batch=post cannot distinguish "
                    "(rename one, or use --batch query)."
                )


def _gates(path: Path | None) -> tuple[StoredGate, ...]:
    if path is None:
        return ()
    # loads numerical libraries that few runs need
    from jobs.evidence_retrieval.predictions.fitted_gate import decode  # noqa: PLC0415

    try:
        return decode(path.read_text("utf-8"))
    except OSError as error:
        raise DatasetError(f"{path}: {error.strerror} (check the path).") from error
    except ValueError as error:
        raise DatasetError(f"{path.name}: {error}") from error
