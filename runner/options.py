"""Defines how a run is carried out: models, endpoints, limits, parameters."""

from __future__ import annotations

import difflib
import re
import tomllib
import unicodedata
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias

import tomli_w
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from runner.clients.client import Api, Route, is_offline, route
from runner.engine.failure_policy import DEFAULT, FutilityMonitor, rules_of
from runner.errors import UsageError
from runner.limits.limiter import MOST_CALLS, Limits
from runner.messages import (
    ABSENT,
    OMITTABLE,
    Parameters,
    check_body,
    check_headers,
    decoded,
    headers_of,
    json_object,
)
from store.filesystem import replace_file
from store.results import StoppingRule


def _one_word(value: str | None) -> str | None:
    """An empty word is none, as of an unset variable."""
    if value is not None and not re.fullmatch(r"[\w.:-]+", value):
        raise ValueError(f"{value!r} is not one word")
    return value


def _table(value: object) -> object:
    return None if value is None else json_object(value)


def _table_or_none(value: object) -> object:
    return value if value == ABSENT else _table(value)


None_: TypeAlias = Literal["none"]
"""How a parameter is written that is not to be sent."""
Word: TypeAlias = Annotated[str | None, AfterValidator(_one_word)]
Body: TypeAlias = Annotated[
    str | None, AfterValidator(check_body), BeforeValidator(_table)
]
Headers: TypeAlias = Annotated[
    str | None, AfterValidator(check_headers), BeforeValidator(_table)
]


class ParameterOptions(BaseModel):
    """Parameters of requests, for a run or for one model of it.

    Tables are held as JSON, which is what `run.toml` shows: TOML has no null.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    temperature: None_ | Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = (
        Field(None, description="of sampling; none: not sent")
    )
    max_output_tokens: None_ | Annotated[int, Field(ge=1)] | None = Field(
        None, description="longest reply in tokens; none: not sent"
    )
    top_p: None_ | Annotated[float, Field(ge=0, le=1)] | None = None
    reasoning_effort: Word = Field(None, description="such as low, medium or high")
    thinking: Annotated[str | None, BeforeValidator(_table_or_none)] = Field(
        None, description="table that turns reasoning on or off"
    )
    service_tier: Word = Field(None, description="such as flex or priority")
    extra_body: Body = Field(None, description="further fields of the request")
    extra_headers: Headers = Field(None, description="further headers, by name")


BASELINE = "baseline/lexical"
PRICE_FIELDS = (
    "usd_per_mtok_in",
    "usd_per_mtok_out",
    "usd_per_mtok_cached",
    "usd_per_mtok_cache_write",
)
"""Of a model's table, dollars a million tokens; the first two make a price."""

NO_PRICE = "write IN,OUT or IN,OUT,CACHED in dollars a million tokens, as 0.15,0.60"

MOST_IN_BATCH = 50_000
"""Requests; what OpenAI takes, and half of what Anthropic does."""

_SIDES = 2
"""Models that a comparison decides between."""

_BREAKING = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Unicode's categories of controls, halves of characters, and ends of lines."""


def _variable(name: str | None) -> str | None:
    """*name*, which somebody may take for the place of the key itself."""
    if name is not None and re.fullmatch(r"[A-Z_][A-Z0-9_]*", name) is None:
        raise ValueError(
            "this is not the name of a variable in capitals; a key itself belongs "
            "into the environment or into .env"
        )
    return name


def _on_one_line(model: str) -> str:
    """A name is printed in lists, where a line of its own would be believed."""
    if not model or any(unicodedata.category(c) in _BREAKING for c in model):
        raise ValueError(f"{model!r} cannot be the name of a model")
    return model


ModelName: TypeAlias = Annotated[str, AfterValidator(_on_one_line)]
Variable: TypeAlias = Annotated[str | None, AfterValidator(_variable)]


_WORDS = ("top_p", "reasoning_effort", "thinking", "service_tier")


class ModelOptions(ParameterOptions):
    """What a configuration file may set for one model; None: as for the run."""

    seed: None_ | int | None = Field(None, description="of sampling; none: not sent")
    base_url: str | None = None
    api: Api | Literal["auto"] | None = None
    api_key_env: Variable = None
    concurrency: int | None = Field(None, ge=1, le=MOST_CALLS)
    rpm: float | None = Field(None, gt=0, description="requests a minute")
    tpm: float | None = Field(None, gt=0, description="tokens a minute")
    weight: float = Field(1.0, gt=0, description="share of an endpoint used by several")
    usd_per_mtok_in: float | None = Field(None, ge=0, allow_inf_nan=False)
    usd_per_mtok_out: float | None = Field(None, ge=0, allow_inf_nan=False)
    usd_per_mtok_cached: float | None = Field(None, ge=0, allow_inf_nan=False)
    usd_per_mtok_cache_write: float | None = Field(None, ge=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _whole_price(self) -> Self:
        """Half a price is none: what is missing would be asked of another table."""
        fields_set = self.model_fields_set
        if fields_set.intersection(PRICE_FIELDS) and not fields_set.issuperset(
            PRICE_FIELDS[:2]
        ):
            raise ValueError("give usd_per_mtok_in and usd_per_mtok_out together")
        return self


class RunOptions(ParameterOptions):
    """Everything about a run that is not a setting of its job."""

    model: tuple[ModelName, ...] = Field((BASELINE,), min_length=1)
    judge_model: ModelName = Field(
        BASELINE, description="judges answers, where a job asks"
    )
    embed_model: ModelName = Field(BASELINE, description="makes vectors of texts")
    rerank_model: ModelName = Field(
        BASELINE, description="scores documents for a query"
    )
    replicates: int = Field(1, ge=1, description="times an item is asked")
    base_url: str | None = Field(None, description="address of an OpenAI-form endpoint")
    api: Api | Literal["auto"] = Field(
        "auto", description="form of chats on OpenAI-form endpoints"
    )
    api_key_env: Variable = Field(
        None, description="variable that holds the key; openai/... has OPENAI_API_KEY"
    )
    concurrency: int = Field(
        256, ge=1, le=MOST_CALLS, description="most calls at a time, per model"
    )
    rpm: float | None = Field(None, gt=0, description="requests a minute, per model")
    tpm: float | None = Field(None, gt=0, description="tokens a minute, per model")
    rate_share: int = Field(
        1, ge=1, description="processes that keep to these limits together"
    )
    timeout_s: float = Field(300.0, gt=0, description="one attempt, at most")
    deadline_s: float = Field(3600.0, gt=0, description="one task, retries included")
    grace_s: float = Field(30.0, ge=0, description="how long a drain waits for calls")
    unknown: Literal["retry", "hold"] = Field(
        "retry", description="what to do with attempts that a crash left unknown"
    )
    price: tuple[float, ...] | None = Field(
        None, description="dollars a million tokens: in, out, and if need be cached"
    )
    allow_unknown_price: bool = False
    cache: bool = Field(
        default=False, description="take answers of earlier runs, and keep these"
    )
    cache_dir: Path | None = Field(
        None, description="folder of cache.db; that of the user's caches if not set"
    )
    budget: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="US dollars, at most"
    )
    stop_when_decided: str | None = Field(
        None, description="metric[>=margin] of two models that ends the run"
    )
    stop_if: tuple[str, ...] | None = Field(
        None, description="shares of useless replies that stop a model; or off"
    )
    """None: the usual rule, for models that are asked over the network."""
    alpha: float = Field(
        0.05, gt=0, lt=1, description="chance of a wrong decision, at most"
    )
    batch: bool = Field(
        default=False, description="ask by batches, within a day and at half the price"
    )
    batch_requests: int = Field(
        1000, ge=1, le=MOST_IN_BATCH, description="requests in a batch, at most"
    )
    batch_adopt: bool = Field(
        default=False, description="take over batches of the run that its log lacks"
    )
    batch_open: int = Field(
        10, ge=1, description="batches at a time, for each model, at most"
    )
    batch_poll_s: float = Field(
        60.0, gt=0, description="between two looks at a batch; longer as it goes on"
    )
    batch_settle_s: float = Field(
        120.0, ge=0, description="until a batch that no look shows is not there"
    )
    """Anthropic's were reported to be unknown by their id up to two minutes after they
    were made, between looks that showed them (anthropic-sdk-python, issue 1432)."""
    batch_price_factor: float = Field(
        0.5, gt=0, le=1, description="what a batch costs of the price of single calls"
    )
    model_seed: int | None = Field(None, description="seed of sampling")
    drop_refused: bool = Field(
        default=False,
        description="leave out what an endpoint refuses, even if it was set here",
    )
    seed: int = Field(0, description="of the jitter between retries")
    models: Mapping[str, ModelOptions] = Field(default_factory=dict)

    @field_validator("model", mode="before")
    @classmethod
    def _one_or_more(cls, models: object) -> object:
        return (models,) if isinstance(models, str) else models

    @field_validator("stop_if", mode="before")
    @classmethod
    def _one_rule_or_more(cls, rules: object) -> object:
        return (rules,) if isinstance(rules, str) else rules

    @field_validator("stop_if")
    @classmethod
    def _rules(cls, typed: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """Rules as they are typed, each checked."""
        if typed is not None:
            rules_of(typed)
        return typed

    @field_validator("price", mode="before")
    @classmethod
    def _dollars(cls, price: Any) -> Any:  # noqa: ANN401 - whatever was written
        """A price, typed as `0.15,0.60` or listed in a file."""
        if price is None:
            return None
        words = price.split(",") if isinstance(price, str) else price
        try:
            numbers = tuple(map(float, words))
        except (TypeError, ValueError):
            raise ValueError(NO_PRICE) from None
        is_sane = all(0 <= number < float("inf") for number in numbers)
        if len(numbers) not in {2, 3} or not is_sane:
            raise ValueError(NO_PRICE)
        return numbers

    @field_validator("model")
    @classmethod
    def _unique_models(cls, models: tuple[str, ...]) -> tuple[str, ...]:
        """A model that is named twice is not paid twice: that is what replicates do."""
        return tuple(dict.fromkeys(models))

    @model_validator(mode="after")
    def _is_decidable(self) -> Self:
        """What a run is to stop at can be read, and is about two models."""
        if self.stopping is not None and len(self.model) != _SIDES:
            raise ValueError(
                "stop_when_decided compares two models; name two with --model"
            )
        return self

    @model_validator(mode="after")
    def _is_holdable(self) -> Self:
        """All that may wait in batches at a time can be held."""
        if self.batch and self.batch_requests * self.batch_open > MOST_CALLS:
            raise ValueError(
                f"batch_requests times batch_open is more than {MOST_CALLS:,} requests "
                "at a time"
            )
        return self

    @property
    def stopping(self) -> StoppingRule | None:
        """The question that the run stops at once it is decided, if there is one."""
        if self.stop_when_decided is None:
            return None
        return StoppingRule.of(self.stop_when_decided, self.alpha)

    @property
    def all_models(self) -> tuple[str, ...]:
        """Every model that is named in any role, once."""
        others = (self.judge_model, self.embed_model, self.rerank_model)
        return tuple(dict.fromkeys((*self.model, *others)))

    def futility(self, models: Collection[str]) -> FutilityMonitor:
        """What judges the replies of *models*; offline ones only if that was typed.

        A baseline costs nothing, and may leave many replies unread by design.
        """
        if self.stop_if is not None:
            return FutilityMonitor(rules_of(self.stop_if), models)
        online = [model for model in models if not is_offline(model)]
        return FutilityMonitor(rules_of([DEFAULT]), online)

    def of(self, model: str) -> ModelOptions:
        """The options of one model, the run's where it has none of its own."""
        model_options = self.models.get(model, ModelOptions())
        return model_options.model_copy(
            update={
                "base_url": model_options.base_url or self.base_url,
                "api": model_options.api or self.api,
                "api_key_env": model_options.api_key_env or self.api_key_env,
                "concurrency": model_options.concurrency or self.concurrency,
                "rpm": model_options.rpm or self.rpm,
                "tpm": model_options.tpm or self.tpm,
            }
        )

    def parameters_of(self, model: str) -> Parameters:
        """The parameters of requests to one model; the run's where it has none."""
        model_options = self.models.get(model, ModelOptions())
        values: dict[str, Any] = {
            name: getattr(model_options, name)
            if getattr(model_options, name) is not None
            else getattr(self, name)
            for name in (*OMITTABLE, *_WORDS)
        }
        values["seed"] = (
            self.model_seed if model_options.seed is None else model_options.seed
        )
        absent = {name for name in OMITTABLE if values[name] == ABSENT}
        # an effort of "none" is a word of OpenAI's own
        sent = {
            name: None if value == ABSENT and name != "reasoning_effort" else value
            for name, value in values.items()
        }
        body = {**decoded(self.extra_body), **decoded(model_options.extra_body)}
        headers = dict(headers_of(self.extra_headers))
        return Parameters(
            **sent,
            extra_body=json_object(body),
            extra_headers=tuple(
                sorted(
                    (headers | dict(headers_of(model_options.extra_headers))).items()
                )
            ),
            absent=frozenset(absent),
        )

    def is_batched(self, model: str) -> bool:
        """Whether *model* is asked by batches: subjects and judges that are online."""
        chat_models = (*self.model, self.judge_model)
        return self.batch and model in chat_models and not is_offline(model)

    def endpoint_of(self, model: str) -> str:
        """The name of the endpoint that serves a model; what it limits is shared."""
        name = self.of(model).base_url or model
        return f"{name} by batches" if self.is_batched(model) else name

    def limits_of(self, model: str) -> Limits:
        """What is set for one model's calls."""
        model_options = self.of(model)
        if self.is_batched(model):
            calls = self.batch_requests * self.batch_open
            return Limits(concurrency=calls, weight=model_options.weight, batched=True)
        return Limits(
            concurrency=model_options.concurrency or self.concurrency,
            rpm=model_options.rpm,
            tpm=model_options.tpm,
            weight=model_options.weight,
            processes=self.rate_share,
        )


def options_from(values: Mapping[str, Any]) -> RunOptions:
    """Validated options; raise `UsageError` naming the option that is off."""
    try:
        options = RunOptions.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"]) or "configuration"
        if first["type"] == "extra_forbidden":
            raise unknown_option(name) from error
        wrong = first["msg"].removeprefix("Value error, ")
        if first["loc"][-1:] == (_NONE_BRANCH,):
            name, wrong = _omittable(first["loc"][:-1])
        raise UsageError(f"Option {name}: {wrong}; see siftlog run --help.") from error
    all_models = options.all_models
    idle = sorted(set(options.models) - set(all_models))
    if idle:
        raise UsageError(
            f"[models.{idle[0]!r}] configures a model that the run does "
            f"not use; it uses {', '.join(all_models)}."
        )
    return options


def unknown_option(name: str) -> UsageError:
    """The error for a name in a configuration file that no option has."""
    near = difflib.get_close_matches(name, RunOptions.model_fields, n=1)
    hint = f"did you mean {near[0]!r}?" if near else "see siftlog run --help;"
    return UsageError(
        f"There is no option {name!r}; {hint} The job's settings go under [settings]."
    )


def check_baselines(options: RunOptions) -> None:
    """Refuse baselines that no job has, before a new run is made.

    Runs that are there may name one: any name asked the job's only baseline.

    Raises:
        UsageError: there is one, naming the offline models.
    """
    for model in options.all_models:
        is_baseline = route(model, has_base_url=False) is Route.BASELINE
        if is_baseline and model != BASELINE:
            raise UsageError(
                f"There is no offline model {model!r}: use {BASELINE} (the nearest), "
                "recorded:FILE or recorded:RUN."
            )


_NONE_BRANCH = "literal['none']"
"""What pydantic calls the first kind of value of an option that takes `none` too."""


def _omittable(place: tuple[int | str, ...]) -> tuple[str, str]:
    """Name of an option that takes a number or `none`, and what to write there."""
    *table, field = map(str, place)
    options, flag = (
        (ModelOptions, "") if table else (RunOptions, f" (--{field.replace('_', '-')})")
    )
    annotation: Any = options.model_fields[field].annotation
    schema = TypeAdapter(annotation).json_schema()
    number = next(
        kind for kind in schema["anyOf"] if kind.get("type") in {"integer", "number"}
    )
    noun = "a whole number" if number["type"] == "integer" else "a number"
    low, high = number.get("minimum"), number.get("maximum")
    if high is not None:
        noun += f" from {low:g} to {high:g}"
    elif low is not None:
        noun += f" of at least {low:g}"
    return ".".join((*table, field)) + flag, f"write {noun}, or none"


def read_toml(path: Path) -> dict[str, Any]:
    """A configuration file's content; raise `UsageError` naming file and place."""
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError as error:
        raise UsageError(f"There is no configuration file {path}.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}.") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not valid TOML: {error}.") from error


def write_toml(
    path: Path, *, job: str, options: RunOptions, settings: Mapping[str, Any]
) -> None:
    """Write the resolved configuration of a run; it can be passed to `--config`."""
    # whole or not at all: the shards of a run write it, and others read it meanwhile
    content = toml_of(job=job, options=options, settings=settings)
    replace_file(path, content.encode())


def toml_of(*, job: str, options: RunOptions, settings: Mapping[str, Any]) -> str:
    """The resolved configuration of a run, as `write_toml` writes it."""
    content = {
        "job": job,
        **_without_none(options.model_dump(mode="json")),
        "settings": _without_none(settings),
    }
    return tomli_w.dumps(content)


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """TOML has no null: what is not set is left out."""
    return {
        key: _without_none(value) if isinstance(value, Mapping) else value
        for key, value in values.items()
        if value is not None and value != {}
    }
