"""Defines how a run is carried out: models, endpoints, limits, parameters."""

from __future__ import annotations

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
from store.nearest import did_you_mean
from store.results import StoppingRule


def _one_word(value: str | None) -> str | None:
    """Check that a value is one word or None; empty means None."""
    if value is not None and not re.fullmatch(r"[\w.:-]+", value):
        raise ValueError(f"{value!r} is not one word")
    return value


def _table(value: object) -> object:
    return None if value is None else json_object(value)


def _table_or_none(value: object) -> object:
    return value if value == ABSENT else _table(value)


None_: TypeAlias = Literal["none"]
"""Value of a parameter that must not be sent."""
Word: TypeAlias = Annotated[str | None, AfterValidator(_one_word)]
Body: TypeAlias = Annotated[
    str | None, AfterValidator(check_body), BeforeValidator(_table)
]
Headers: TypeAlias = Annotated[
    str | None, AfterValidator(check_headers), BeforeValidator(_table)
]


class ParameterOptions(BaseModel):
    """Parameters of requests, for a run or for one model of it.

    Tables are stored as JSON, also in `run.toml`, because TOML has no null.
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
"""Fields of a model's table, dollars per million tokens; the first two are required."""

NO_PRICE = "write IN,OUT or IN,OUT,CACHED in dollars a million tokens, as 0.15,0.60"

MOST_IN_BATCH = 50_000
"""Maximum requests per batch: OpenAI's limit, and half of Anthropic's."""

_SIDES = 2
"""Number of models in a decided comparison."""

_BREAKING = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Unicode's categories of controls, surrogates, and line separators."""


def _variable(name: str | None) -> str | None:
    """Check that *name* is a variable's name and not the key itself."""
    if name is not None and re.fullmatch(r"[A-Z_][A-Z0-9_]*", name) is None:
        raise ValueError(
            "this is not the name of a variable in capitals; a key itself belongs "
            "into the environment or into .env"
        )
    return name


def _on_one_line(model: str) -> str:
    """Check that a model's name has no line breaks: it is printed in lists."""
    if not model or any(unicodedata.category(c) in _BREAKING for c in model):
        raise ValueError(f"{model!r} cannot be the name of a model")
    return model


ModelName: TypeAlias = Annotated[str, AfterValidator(_on_one_line)]
Variable: TypeAlias = Annotated[str | None, AfterValidator(_variable)]


_WORDS = ("top_p", "reasoning_effort", "thinking", "service_tier")


class ModelOptions(ParameterOptions):
    """Options of one model in a configuration file; None: as for the run."""

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
        """Require both prices: the missing one would come from another table."""
        fields_set = self.model_fields_set
        if fields_set.intersection(PRICE_FIELDS) and not fields_set.issuperset(
            PRICE_FIELDS[:2]
        ):
            raise ValueError("give usd_per_mtok_in and usd_per_mtok_out together")
        return self


class RunOptions(ParameterOptions):
    """All options of a run that are not settings of its job."""

    model: tuple[ModelName, ...] = Field((BASELINE,), min_length=1)
    judge_model: ModelName = Field(
        BASELINE, description="judges answers, where a job asks"
    )
    embed_model: ModelName = Field(BASELINE, description="makes vectors of texts")
    rerank_model: ModelName = Field(
        BASELINE, description="scores documents for a query"
    )
    stage_models: tuple[ModelName, ...] | None = Field(
        None, description="models of stages that were added to the run"
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
    """None: the default rule, for online models."""
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
    """Anthropic's batches were reported missing by id up to two minutes after creation,
    between requests that found them (anthropic-sdk-python, issue 1432)."""
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
        """Check each typed rule."""
        if typed is not None:
            rules_of(typed)
        return typed

    @field_validator("price", mode="before")
    @classmethod
    def _dollars(cls, price: Any) -> Any:  # noqa: ANN401 - whatever was written
        """Parse a price, typed as `0.15,0.60` or listed in a file."""
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
        """Drop repeated models; replicates are for repeated calls."""
        return tuple(dict.fromkeys(models))

    @model_validator(mode="after")
    def _is_decidable(self) -> Self:
        """Check that a stopping rule is valid and compares two models."""
        if self.stopping is not None and len(self.model) != _SIDES:
            raise ValueError(
                "stop_when_decided compares two models; name two with --model"
            )
        return self

    @model_validator(mode="after")
    def _is_holdable(self) -> Self:
        """Check that the requests of all open batches fit in memory."""
        if self.batch and self.batch_requests * self.batch_open > MOST_CALLS:
            raise ValueError(
                f"batch_requests times batch_open is more than {MOST_CALLS:,} requests "
                "at a time"
            )
        return self

    @property
    def stopping(self) -> StoppingRule | None:
        """The rule that stops the run once it is decided, if any."""
        if self.stop_when_decided is None:
            return None
        return StoppingRule.of(self.stop_when_decided, self.alpha)

    @property
    def all_models(self) -> tuple[str, ...]:
        """Every model in any role, once."""
        others = (self.judge_model, self.embed_model, self.rerank_model)
        return tuple(dict.fromkeys((*self.model, *others, *(self.stage_models or ()))))

    def futility(self, models: Collection[str]) -> FutilityMonitor:
        """Return the monitor of replies; offline models only if typed.

        A baseline is free, and may have many unparsed replies by design.
        """
        if self.stop_if is not None:
            return FutilityMonitor(rules_of(self.stop_if), models)
        online = [model for model in models if not is_offline(model)]
        return FutilityMonitor(rules_of([DEFAULT]), online)

    def of(self, model: str) -> ModelOptions:
        """Return the options of one model; the run's options are the defaults."""
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
        """Return the request parameters of one model; the run's are the defaults."""
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
        # an effort of "none" is a value of OpenAI's API
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
        """Return whether *model* uses batches: online subjects and judges."""
        chat_models = (*self.model, self.judge_model)
        return self.batch and model in chat_models and not is_offline(model)

    def endpoint_of(self, model: str) -> str:
        """Return the name of a model's endpoint; its limits are shared."""
        name = self.of(model).base_url or model
        return f"{name} by batches" if self.is_batched(model) else name

    def limits_of(self, model: str) -> Limits:
        """Return the user's limits for one model's calls."""
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
    """Validate options; raise `UsageError` naming the invalid option."""
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
            f"[models.{idle[0]!r}] configures a model that the run does not use; "
            + did_you_mean(idle[0], all_models, f"it uses {', '.join(all_models)}.")
        )
    return options


def unknown_option(name: str) -> UsageError:
    """Return the error for an unknown name in a configuration file."""
    *table, key = name.split(".")
    fields = ModelOptions.model_fields if table else {**RunOptions.model_fields, **_TOP}
    hint = did_you_mean(key, fields, "see siftlog run --help-all.")
    where = (
        f" under [{'.'.join(table)}]"
        if table
        else " (settings of the job go under [settings])"
    )
    return UsageError(f"There is no option {key!r}{where}; {hint}")


_TOP: Mapping[str, None] = {"job": None, "settings": None}
"""Names at the top of a configuration file that are no options."""


def check_baselines(options: RunOptions) -> None:
    """Refuse unknown baselines before a new run is created.

    Existing runs may name one: any name used to call the job's only baseline.

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
"""Pydantic's name for the first branch of an option that also accepts `none`."""


def _omittable(place: tuple[int | str, ...]) -> tuple[str, str]:
    """Return name and allowed values of an option that also accepts `none`."""
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
    """Read a configuration file; raise `UsageError` naming file and position."""
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
    # atomic: the shards of a run write it while others read it
    content = toml_of(job=job, options=options, settings=settings)
    replace_file(path, content.encode())


def toml_of(*, job: str, options: RunOptions, settings: Mapping[str, Any]) -> str:
    """Return the resolved configuration of a run, as `write_toml` writes it."""
    content = {
        "job": job,
        **_without_none(options.model_dump(mode="json")),
        "settings": _without_none(settings),
    }
    return tomli_w.dumps(content)


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """Remove None values, because TOML has no null."""
    return {
        key: _without_none(value) if isinstance(value, Mapping) else value
        for key, value in values.items()
        if value is not None and value != {}
    }
