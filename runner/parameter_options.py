"""Parameters of requests as people write them: validated here once."""

from __future__ import annotations

import re
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from runner.parameters import ABSENT, check_body, check_headers, json_object


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
