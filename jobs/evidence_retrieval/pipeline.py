"""Configurations: which stages a ranking goes through, as values to be compared.

All configurations read the same stored answers; adding one costs calls only for stages
that were never asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Reranker: TypeAlias = Literal["none", "llm", "assess", "endpoint"]
GraphMethod: TypeAlias = Literal["none", "ppr", "label_propagation"]
Gate: TypeAlias = Literal["none", "passthrough", "classifier"]
Calibration: TypeAlias = Literal["none", "isotonic", "platt"]

SOURCES = ("bm25", "embedding", "assess", "document", "random")
"""First stages by themselves; `rrf:[a,b]` fuses some of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """One way from a post's sentences to what a reader sees."""

    name: str
    first_stage: tuple[str, ...] = ("bm25",)  #: several: fused by reciprocal rank
    rerank: Reranker = "none"
    graph: GraphMethod = "none"
    dynamic_k: str = "none"  #: "none", "mass" or "fixed:K"
    gate: Gate = "none"
    calibration: Calibration = "none"
    three_state: bool = False
    top: int = 10  #: sentences shown where nothing chooses K

    @property
    def is_fitted(self) -> bool:
        """Whether anything in it learns from gold labels."""
        return self.gate == "classifier" or (
            self.gate == "passthrough"
            and (self.calibration != "none" or self.three_state)
        )


STANDARD = (
    Config(name="first stage", top=24),
    Config(name="with reranker", rerank="assess"),
    Config(name="with graph", rerank="assess", graph="ppr"),
    Config(name="with dynamic K", rerank="assess", graph="ppr", dynamic_k="mass"),
    Config(
        name="with gate",
        rerank="assess",
        graph="ppr",
        dynamic_k="mass",
        gate="classifier",
        calibration="isotonic",
    ),
    Config(
        name="full",
        rerank="assess",
        graph="ppr",
        dynamic_k="mass",
        gate="classifier",
        calibration="isotonic",
        three_state=True,
    ),
)
"""Each adds one stage to the one before; the last is the headline."""
