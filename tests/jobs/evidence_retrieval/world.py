"""A small invented data set, and a run's answers about it, for tests of prediction.

What a model says is drawn from the truth by a seeded chance, once; the gold that the
data set carries can then be changed without changing an answer.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from jobs.evidence_retrieval.data import (
    Criterion,
    EvidenceDataset,
    Gold,
    PoolSentence,
    Post,
)
from jobs.evidence_retrieval.job import job
from jobs.evidence_retrieval.pipeline import STANDARD, Config
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.testing import MemoryAnswers
from runner.job import Task
from runner.messages import AnyReply, RankedDocument, Ranking, Reply, Vectors

WORDS = [
    *("river", "stone", "lamp", "bread", "window", "coat"),
    *("letter", "garden", "ship", "clock", "salt", "paper"),
]

Say: TypeAlias = Callable[[Task], AnyReply | None]
"""A task's reply; None where it finally fails."""


def post(name: str, *texts: str) -> Post:
    return Post(
        id=name,
        sentences=tuple(
            PoolSentence(sid=sid, uid=f"{name}_{sid}", text=text)
            for sid, text in enumerate(texts)
        ),
    )


def draw(*parts: object) -> random.Random:
    digest = hashlib.sha256(":".join(map(str, parts)).encode()).digest()
    return random.Random(digest)


def dataset(
    *,
    posts: int = 40,
    criteria: int = 3,
    share: float = 0.35,
    configs: tuple[Config, ...] = STANDARD,
    **settings: Any,
) -> EvidenceDataset:
    """Posts of three to nine sentences; a share of queries has one or two golden."""
    named = tuple(
        Criterion(id=f"A.{n + 1}", text=f"speaks of {WORDS[n]}")
        for n in range(criteria)
    )
    made, evidence = [], {}
    for number in range(posts):
        chance = draw("post", number)
        name = f"p{number:03}"
        texts = [
            " ".join(chance.choices(WORDS, k=chance.randint(2, 7))) + f" {number} {sid}"
            for sid in range(chance.randint(3, 9))
        ]
        made.append(post(name, *texts))
        for criterion in named:
            if chance.random() < share:
                places = chance.sample(range(len(texts)), k=chance.randint(1, 2))
                uids = tuple(f"{name}_{place}" for place in sorted(places))
                evidence[name, criterion.id] = uids
    gold = Gold(posts=frozenset(each.id for each in made), evidence=evidence)
    return EvidenceDataset(
        settings=EvidenceSettings(**settings),
        posts=tuple(made),
        criteria=named,
        gold=gold,
        configs=configs,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sayings:
    """Replies that lean towards the truth of a data set."""

    world: EvidenceDataset
    noise: float = 0.15
    unreadable: frozenset[str] = frozenset()  #: keys whose replies are not JSON
    truth: Mapping[tuple[str, str], tuple[str, ...]] = field(init=False)

    def __post_init__(self) -> None:
        gold = self.world.gold
        object.__setattr__(self, "truth", {} if gold is None else dict(gold.evidence))

    def __call__(self, task: Task) -> AnyReply | None:
        if task.key in self.unreadable:
            return Reply(text="I would rather not say.")
        match task.stage:
            case "assess":
                return Reply(text=json.dumps(self._assessment(task)))
            case "rerank":
                return Reply(text=json.dumps({"ranking": self._ranking(task)}))
            case "embed":
                return self._vectors(task)
            case _:
                return self._scores(task)

    def _assessment(self, task: Task) -> dict[str, object]:
        own, criterion = self.world.query(task.key)
        golden = self.truth.get((own.id, criterion.id), ())
        chance = draw("assess", task.key, task.model, task.replicate)
        sentences = [
            {"n": sentence.sid + 1, "relevance": chance.randint(40, 95)}
            for sentence in own.sentences
            if (sentence.uid in golden) != (chance.random() < self.noise)
        ]
        centre = 70 if golden else 25
        said = min(100, max(0, round(chance.gauss(centre, 100 * self.noise))))
        return {"evidence_probability": said, "sentences": sentences}

    def _ranking(self, task: Task) -> list[int]:
        own, _ = self.world.query(task.key.rpartition("#")[0])
        numbers = list(range(1, len(own.sentences) + 1))
        draw("rerank", task.key, task.model, task.replicate).shuffle(numbers)
        return numbers

    def _vectors(self, task: Task) -> Vectors:
        own = self.world.post(task.key)
        count = len(self.world.criteria) + len(own.sentences)
        chance = draw("embed", task.key)
        return Vectors.of(
            [[chance.gauss(0, 1) for _ in range(8)] for _ in range(count)]
        )

    def _scores(self, task: Task) -> Ranking:
        own, _ = self.world.query(task.key)
        chance = draw("rerank_api", task.key)
        results = tuple(
            RankedDocument(index=place, score=chance.random())
            for place in range(len(own.sentences))
        )
        return Ranking(results=results)


def answers(
    world: EvidenceDataset,
    say: Say | None = None,
    *,
    models: tuple[str, ...] = ("m",),
    replicates: int = 1,
) -> MemoryAnswers:
    """A whole run's answers, follow-ups of follow-ups included."""
    return MemoryAnswers.of_run(
        job, world, say or Sayings(world=world), models, replicates
    )
