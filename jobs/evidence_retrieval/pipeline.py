"""Defines configurations: the stages of a ranking, and their TOML file."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
)

from jobs.evidence_retrieval.settings import EvidenceSettings
from runner.errors import DatasetError

Reranker: TypeAlias = Literal["none", "llm", "assess", "endpoint"]
GraphMethod: TypeAlias = Literal["none", "ppr", "label_propagation"]
Gate: TypeAlias = Literal["none", "passthrough", "classifier"]
Calibration: TypeAlias = Literal["none", "isotonic", "platt"]

SOURCES = ("bm25", "embedding", "assess", "document", "random")
"""First stages; `rrf:[a,b]` fuses several of them."""


_FUSION = re.compile(r"rrf:\[([^\[\]]*)\]")
_FIXED = re.compile(r"fixed:[1-9][0-9]*")


def first_stages(text: str) -> tuple[str, ...]:
    """Return the rankings of a first stage; several are fused.

    >>> first_stages("rrf:[bm25, embedding]")
    ('bm25', 'embedding')

    Raises:
        ValueError: it is not a first stage; the message lists those.
    """
    fused = _FUSION.fullmatch(text)
    names = tuple(n.strip() for n in fused[1].split(",")) if fused else (text,)
    if not set(names) <= set(SOURCES):
        raise ValueError(f"{text!r} is not one of {', '.join(SOURCES)} or rrf:[a,b]")
    if fused and (len(names) == 1 or len(set(names)) < len(names)):
        raise ValueError(f"{text!r} does not fuse several different rankings")
    return names


def _first_stage(value: object) -> object:
    """Parse the rankings of a first stage in a file; tuples are unchanged."""
    if isinstance(value, tuple):
        return value
    if not isinstance(value, str):
        raise ValueError("Input should be a valid string")  # noqa: TRY004 - pydantic's
    return first_stages(value)


def _dynamic_k(text: str) -> str:
    if text not in {"none", "mass"} and not _FIXED.fullmatch(text):
        raise ValueError(f"{text!r} is not none, mass or fixed:K with K from 1")
    return text


class Config(BaseModel):
    """A configuration of the stages from a post to its selection: a `[[config]]`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str = Field(min_length=1)
    first_stage: Annotated[tuple[str, ...], BeforeValidator(_first_stage)] = ("bm25",)
    """Several are fused by reciprocal rank."""
    rerank: Reranker = "none"
    graph: GraphMethod = "none"
    dynamic_k: Annotated[str, AfterValidator(_dynamic_k)] = "none"
    """`none`, `mass` or `fixed:K`."""
    gate: Gate = "none"
    calibration: Calibration = "none"
    three_state: bool = False
    top: int = Field(10, ge=1)
    """Number of sentences shown if no rule chooses K."""

    @property
    def is_fitted(self) -> bool:
        """Whether any part of it is fitted to gold labels."""
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
"""Each adds one stage to the previous; the last is the headline."""


def read_configs(settings: EvidenceSettings) -> tuple[Config, ...]:
    """Return the configurations of `--pipeline`, or the six standard ones.

    Raises:
        DatasetError: the file is not TOML, or a configuration is invalid.
    """
    if settings.pipeline is None:
        return STANDARD
    path = settings.pipeline
    tables = _tables(path)
    configs = tuple(
        _config(f"{path.name} config {number}", table)
        for number, table in enumerate(tables, start=1)
    )
    names: set[str] = set()
    for config in configs:
        location = f"{path.name} config {config.name!r}"
        if config.name in names:
            raise DatasetError(
                f"{location}: the name is taken already (choose another)."
            )
        names.add(config.name)
        if complaint := _contradiction(config, settings):
            raise DatasetError(f"{location}: {complaint}.")
    return configs


def _tables(path: Path) -> list[Any]:
    try:
        with path.open("rb") as file:
            content = tomllib.load(file)
    except OSError as error:
        raise DatasetError(f"{path}: {error.strerror} (check the path).") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DatasetError(
            f"{path.name}: not TOML, {error} (correct the file)."
        ) from error
    tables = content.pop("config", [])
    if content:
        raise DatasetError(
            f"{path.name}: unknown key {next(iter(content))} (known is [[config]])."
        )
    if not isinstance(tables, list) or not tables:
        raise DatasetError(f"{path.name}: no configuration in it (write a [[config]]).")
    return tables


def _config(location: str, table: object) -> Config:
    try:
        return Config.model_validate(table)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "table"
        if first["type"] == "extra_forbidden":
            known_keys = ", ".join(Config.model_fields)
            raise DatasetError(
                f"{location}: unknown key {key} (known are {known_keys})."
            ) from error
        message = first["msg"].removeprefix("Value error, ")
        raise DatasetError(f"{location}: {key}: {message} (correct it).") from error


def _contradiction(config: Config, settings: EvidenceSettings) -> str | None:
    """Describe a contradiction within one configuration, with a remedy."""
    if config.calibration != "none" and config.gate == "none":
        return "calibration without a gate (name a gate, or remove calibration)"
    if config.three_state and config.gate == "none":
        return "three_state without a gate (name a gate, or set it to false)"
    # an endpoint receives the whole pool, independent of the order before it
    if config.rerank == "llm" and config.first_stage != (settings.first_stage,):
        return (
            f"rerank llm reorders what --first-stage {settings.first_stage} lists "
            "(give the configuration that first_stage, or change the setting)"
        )
    return None
