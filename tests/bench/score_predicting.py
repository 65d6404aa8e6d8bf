"""Predictions of evidence-retrieval at full size: rankings, and the nested gate.

1,477 invented posts of about 20 sentences with ten criteria each; the goals are those
for 14,770 queries on two cores.
"""

from __future__ import annotations

import random
import time

import numpy as np

from jobs.evidence_retrieval.data import Criterion, EvidenceDataset, PoolSentence, Post
from jobs.evidence_retrieval.inputs import assign_folds
from jobs.evidence_retrieval.pipeline import STANDARD, Config
from jobs.evidence_retrieval.predictions.columns import columns
from jobs.evidence_retrieval.predictions.fitted_gate import FeatureRows
from jobs.evidence_retrieval.predictions.gate import FoldAssignment, nested, spec_of
from jobs.evidence_retrieval.predictions.outputs import Outputs, SubjectOutputs
from jobs.evidence_retrieval.predictions.rankings import ranking_chains
from jobs.evidence_retrieval.settings import EvidenceSettings
from tests.bench.row import Row
from tests.bench.verdict import most

POSTS, CRITERIA, SENTENCES = 1_477, 10, 20
PREVALENCE = 0.0934
MEASURED = 11
"""Features that are measured, beside a column a criterion."""


def measure(quick: bool) -> list[Row]:
    """Seconds of bm25 with the graph, and of the gate of five folds."""
    posts = POSTS // 10 if quick else POSTS
    return [
        most(
            "evidence",
            f"bm25 + graph, {posts * CRITERIA:,} queries, s",
            *_ranked(posts),
        ),
        most(
            "evidence", f"nested gate, {posts * CRITERIA:,} queries, s", *_gated(posts)
        ),
    ]


def _ranked(posts: int) -> tuple[float, float]:
    world = EvidenceDataset(
        settings=EvidenceSettings(),
        posts=tuple(map(_post, range(posts))),
        criteria=tuple(_criterion(number) for number in range(CRITERIA)),
    )
    config = Config(name="graph", graph="ppr")
    outputs = Outputs(subjects={"m": SubjectOutputs()})
    started = time.perf_counter()
    columns(world, outputs, ranking_chains(config))
    return time.perf_counter() - started, 20


def _gated(posts: int) -> tuple[float, float]:
    chance = np.random.default_rng(0)
    n = posts * CRITERIA
    y = (chance.random(n) < PREVALENCE).astype(np.int64)
    measured = chance.normal(size=(n, MEASURED)) + 0.4 * y[:, None]
    one_hot = np.tile(np.eye(CRITERIA), (posts, 1))
    names = [f"p{number:05}" for number in range(posts)]
    rows = FeatureRows(
        names=tuple(f"f{number}" for number in range(MEASURED + CRITERIA)),
        values=np.column_stack([measured, one_hot]),
        stated=1 / (1 + np.exp(-measured[:, 0])),
        posts=tuple(name for name in names for _ in range(CRITERIA)),
    )
    settings = EvidenceSettings()
    spec = spec_of(STANDARD[-1], settings)
    folds = assign_folds(names, settings.n_folds, settings.seed)
    division = FoldAssignment(
        names=tuple(sorted(set(folds.values()))),
        of=folds,
        seed=settings.seed,
        tune_fraction=settings.tune_fraction,
    )
    started = time.perf_counter()
    if spec is not None:
        nested(spec, rows, y, division)
    return time.perf_counter() - started, 15


def _post(number: int) -> Post:
    chance = random.Random(number)
    return Post(
        id=f"p{number:05}",
        sentences=tuple(
            PoolSentence(sid=sid, uid=f"p{number:05}_{sid}", text=_words(chance))
            for sid in range(chance.randint(SENTENCES - 10, SENTENCES + 10))
        ),
    )


def _criterion(number: int) -> Criterion:
    return Criterion(id=f"A.{number + 1}", text=_words(random.Random(-1 - number)))


def _words(chance: random.Random) -> str:
    return " ".join(f"w{int(chance.paretovariate(1))}" for _ in range(15))
