"""The sheet of an imported run: its stored answers as columns.

What the run's own inputs say (`--gold`, `--folds`, `--sentences`) fills in what the
imported files leave open. Numbers that a file states are kept for every row, also where
they mean nothing: the consistency checks look at those, scoring does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from jobs.evidence_retrieval.dataset import Dataset
from jobs.evidence_retrieval.importing.columns import Columns, ints
from jobs.evidence_retrieval.importing.given import (
    CONFIG,
    Given,
    Truth,
    decode_truth,
    read_given,
    united,
)
from jobs.evidence_retrieval.importing.leaks import given_leaks
from jobs.evidence_retrieval.inputs.criteria import natural_order
from jobs.evidence_retrieval.queries import Queries, Sheet
from jobs.inputs.rows import InputFindings
from jobs.metrics.columns import Ints
from runner.errors import DatasetError
from runner.job import Answers, Task


def given_sheet(dataset: Dataset, answers: Answers) -> Sheet:
    """All that an imported run holds.

    Raises:
        DatasetError: the run has no probability in the column that `--prob` names.
    """
    said = _Said.of(dataset, answers).in_order(dataset)
    noticed = InputFindings()
    if said.joined:
        noticed.add(
            "answers_joined",
            "warn",
            "import",
            "A query has two answers of one model; both are read as one answer, and "
            "the first counts where they differ.",
            example=said.joined[0],
            n=len(said.joined),
        )
    _require_column(dataset.settings.prob, said)
    queries = _queries(said, dataset)
    predictions = tuple(
        Columns(model=model, given=said.given[model], y=queries.y).predictions(
            dataset.settings.prob, noticed
        )
        for model in answers.models
    )
    _compare_criteria(dataset, queries, noticed)
    of_files = tuple(found for truth in said.truths for found in truth.noticed)
    per_post = np.bincount(queries.post, minlength=len(queries.posts))
    return Sheet(
        queries=queries,
        predictions=predictions,
        headline=CONFIG,
        leak_checks=given_leaks(dataset, queries, predictions),
        models=answers.models,
        findings=(*of_files, *noticed.findings()),
        sizes={
            "ragged_rows": sum(f.n for f in of_files if f.code == "ragged_rows"),
            "incomplete_posts": int((per_post < len(queries.criteria)).sum()),
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """What files say, query by query."""

    queries: list[tuple[str, str]] = field(default_factory=list)
    truths: list[Truth] = field(default_factory=list)
    given: dict[str, list[Given | None]] = field(default_factory=dict)  #: by model
    joined: list[str] = field(default_factory=list)  #: tasks with an earlier answer

    @classmethod
    def of(cls, dataset: Dataset, answers: Answers) -> _Said:
        """In the order of the log."""
        said = cls(given={model: [] for model in answers.models})
        places: dict[str, int] = {}
        for (answer,) in answers.families():
            task = answer.task
            place = places.setdefault(task.key, len(places))
            if place == len(said.queries):
                post, _, criterion = task.key.rpartition("/")
                said.queries.append((post, criterion))
                said.truths.append(decode_truth(task.context or "{}"))
                for column in said.given.values():
                    column.append(None)
            if answer.chat is not None:
                read = read_given(dataset, task, answer.chat)
                said._add(task, place, read if isinstance(read, Given) else None)
        return said

    def _add(self, task: Task, place: int, given: Given | None) -> None:
        """Keep an answer; imports once wrote probabilities and rankings as two."""
        column = self.given[task.model]
        before = column[place]
        if before is None or given is None:
            column[place] = before or given
            return
        self.joined.append(f"{task.model}: {task.key}")
        column[place] = united(before, given)

    def in_order(self, dataset: Dataset) -> _Said:
        """In file order of posts and then in display order of criteria."""
        posts = {post: i for i, (post, _) in reversed(list(enumerate(self.queries)))}
        places = {name: i for i, name in enumerate(_criteria(self.queries, dataset))}
        order = sorted(
            range(len(self.queries)),
            key=lambda i: (posts[self.queries[i][0]], places[self.queries[i][1]]),
        )
        return _Said(
            queries=[self.queries[i] for i in order],
            truths=[self.truths[i] for i in order],
            given={
                model: [column[i] for i in order]
                for model, column in self.given.items()
            },
            joined=self.joined,
        )


def _criteria(queries: Iterable[tuple[str, str]], dataset: Dataset) -> list[str]:
    """Those of the criteria file in its order, then any other in natural order."""
    found = natural_order(criterion for _, criterion in queries)
    named = [criterion.id for criterion in dataset.criteria if criterion.id in found]
    return [*named, *(name for name in found if name not in named)]


def _compare_criteria(
    dataset: Dataset, queries: Queries, noticed: InputFindings
) -> None:
    named = {criterion.id for criterion in dataset.criteria}
    if named and (odd := natural_order(named ^ set(queries.criteria))):
        noticed.add(
            "criteria_differ",
            "warn",
            "criteria",
            f"The file of criteria has {len(named)} and the import "
            f"{len(queries.criteria)}; some stand in one of the two only.",
            example=odd[0],
            n=len(odd),
        )


def _require_column(prob: str | None, said: _Said) -> None:
    if prob is None:
        return
    columns = {
        column
        for own in said.given.values()
        for given in own
        if given is not None
        for column in given.probs
    }
    if prob not in columns:
        known = ", ".join(sorted(columns)) or "none"
        raise DatasetError(
            f"The import holds no probability column {prob} (it has: {known}; import "
            "the file again with --prob)."
        )


def _queries(said: _Said, dataset: Dataset) -> Queries:
    posts = tuple(dict.fromkeys(post for post, _ in said.queries))
    criteria = tuple(_criteria(said.queries, dataset))
    pools = {post.id: len(post.sentences) for post in dataset.posts}
    truths = [
        _filled(dataset, pools, *query, truth)
        for query, truth in zip(said.queries, said.truths, strict=True)
    ]
    folds = natural_order(t.fold for t in truths if t.fold is not None)
    names_gold = any(truth.gold is not None for truth in truths)
    return Queries(
        posts=posts,
        criteria=criteria,
        post=_places(posts, (post for post, _ in said.queries)),
        criterion=_places(criteria, (criterion for _, criterion in said.queries)),
        pool=ints(truth.pool for truth in truths),
        folds=folds,
        fold=_places(folds, (truth.fold for truth in truths)),
        y=ints(_label(truth) for truth in truths),
        gold=[truth.gold or () for truth in truths] if names_gold else None,
    )


def _label(truth: Truth) -> int | None:
    """Whether there is evidence; gold ids say so where nothing else does."""
    if truth.y is None and truth.gold is not None:
        return int(bool(truth.gold))
    return truth.y


def _filled(
    dataset: Dataset,
    pools: Mapping[str, int],
    post: str,
    criterion: str,
    truth: Truth,
) -> Truth:
    """What is said of a query, completed from the run's own inputs."""
    gold = dataset.gold
    if truth.gold is None and gold is not None and post in gold.posts:
        truth = replace(truth, gold=gold.evidence.get((post, criterion), ()))
    if truth.fold is None and dataset.folds is not None:
        truth = replace(truth, fold=dataset.folds.get(post))
    if truth.pool is None and post in pools:
        truth = replace(truth, pool=pools[post])
    return truth


def _places(names: Sequence[str], values: Iterable[str | None]) -> Ints:
    places = {name: place for place, name in enumerate(names)}
    return ints(None if value is None else places[value] for value in values)
