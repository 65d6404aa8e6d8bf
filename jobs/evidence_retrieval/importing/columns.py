"""What one model of an imported run says of each query, as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from jobs.evidence_retrieval.importing.given import (
    CALIBRATED,
    CONFIG,
    GAMMA_PREFIX,
    RAW,
    Given,
)
from jobs.evidence_retrieval.queries import (
    SCORED,
    UNJUDGED,
    UNKNOWN,
    UNSCORED,
    Predictions,
)
from jobs.inputs.rows import InputFindings
from jobs.metrics.columns import Floats, Ints
from jobs.metrics.selective import STATES, States


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """What one model says of each query; None: nothing."""

    model: str
    given: Sequence[Given | None]
    y: Ints

    def predictions(self, chosen: str | None, noticed: InputFindings) -> Predictions:
        """All of them, with the probability of the column that was *chosen*."""
        column = self._probability(chosen, noticed)
        prob = None if column is None else self._probs(column)
        lists = self._names(lambda said: said.lists)
        stated = self._names(lambda said: said.stated)
        return Predictions(
            model=self.model,
            config=CONFIG,
            status=self._status(prob),
            prob_raw=_or_none(self._probs(RAW)),
            prob=prob,
            score=_or_none(self._floats(lambda said: said.score)),
            tau_neg=_or_none(self._floats(lambda said: said.tau_neg)),
            tau_pos=_or_none(self._floats(lambda said: said.tau_pos)),
            state=self._states(),
            k=self._ks(),
            sweep={
                float(name.removeprefix(GAMMA_PREFIX)): self._k_under(name)
                for name in sorted(stated, key=_gamma)
                if name.startswith(GAMMA_PREFIX)
            },
            lists={name: self._list(name, noticed) for name in lists},
            final=lists[-1] if lists else "",
            given={
                name: self._stated(name)
                for name in stated
                if not name.startswith(GAMMA_PREFIX)
            },
        )

    def _names(self, read: Callable[[Given], Iterable[str]]) -> tuple[str, ...]:
        """All names that any query has, in order of first sight."""
        return tuple(
            dict.fromkeys(name for said in self.given if said for name in read(said))
        )

    def _probability(self, chosen: str | None, noticed: InputFindings) -> str | None:
        """The column to go by: the one that was asked for, else the best there is."""
        columns = self._names(lambda said: said.probs)
        best = next((n for n in (chosen, CALIBRATED, RAW) if n in columns), None)
        if best == RAW and chosen is None:
            noticed.add(
                "raw_probability",
                "info",
                self.model,
                f"There is no {CALIBRATED}; {RAW} is used as the probability.",
            )
        return best or next(iter(columns), None)

    def _status(self, prob: Floats | None) -> list[str]:
        """What became of each query."""
        unscored = (
            [said is None for said in self.given] if prob is None else np.isnan(prob)
        )
        return [
            UNJUDGED if y == UNKNOWN else UNSCORED if is_unscored else SCORED
            for y, is_unscored in zip(self.y, unscored, strict=True)
        ]

    def _floats(self, read: Callable[[Given], float | None]) -> Floats:
        values = (None if said is None else read(said) for said in self.given)
        return np.array([np.nan if x is None else x for x in values], dtype=np.float64)

    def _probs(self, column: str) -> Floats:
        return self._floats(lambda said: said.probs.get(column))

    def _stated(self, name: str) -> Floats:
        return self._floats(lambda said: said.stated.get(name))

    def _states(self) -> States | None:
        names = {name: place for place, name in enumerate(STATES)}
        found = [
            UNKNOWN if said is None or said.state is None else names[said.state]
            for said in self.given
        ]
        return np.array(found, dtype=np.int8) if set(found) - {UNKNOWN} else None

    def _ks(self) -> Ints | None:
        found = ints(None if said is None else said.k for said in self.given)
        return found if (found != UNKNOWN).any() else None

    def _k_under(self, name: str) -> Ints:
        return ints(None if np.isnan(k) else k for k in self._stated(name))

    def _list(self, name: str, noticed: InputFindings) -> list[tuple[str, ...]]:
        found: list[tuple[str, ...]] = []
        for said, y in zip(self.given, self.y, strict=True):
            own = None if said is None else said.lists.get(name)
            if own is None and y == 1:
                noticed.add(
                    "no_list",
                    "warn",
                    f"{self.model} {name}",
                    "Queries with evidence have no list; their evidence counts as "
                    "never retrieved.",
                )
            found.append(own or ())
        return found


def ints(values: Iterable[float | None]) -> Ints:
    """A column of whole numbers, UNKNOWN where there is none."""
    found = [UNKNOWN if value is None else int(value) for value in values]
    return np.array(found, dtype=np.int64)


def _gamma(name: str) -> float:
    """The gamma that a column is about; other columns come first."""
    is_gamma = name.startswith(GAMMA_PREFIX)
    return float(name.removeprefix(GAMMA_PREFIX)) if is_gamma else 0.0


def _or_none(column: Floats) -> Floats | None:
    """A column that says nothing anywhere is not there."""
    return None if np.isnan(column).all() else column
