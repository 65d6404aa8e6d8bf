"""Declares parts of a job: imported when they are first used, or one for each mode.

A job is a class with a table of parts (see `runner.job.Job`). What a run needs from its
first call is a function of a module that `job.py` imports. Scoring, importing and
explaining bring numerical libraries that `siftlog jobs` and a run's first call must not
wait for; they are named instead:

    >>> class Example:
    ...     dumps = Deferred("json:dumps")
    >>> Example().dumps({"a": 1})
    '{"a": 1}'

`tests/jobs/kit/test_job.py` imports every deferred part of every installed job, and
compares its parameters with those of the part in `Job`.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Deferred:
    """A part of a job, named by its module: a function, or a value.

    A function gets the arguments of the part alone, without the job. Outside of a class
    body, such as in a mapping of subcommands, the function is called like any other.
    """

    target: str  #: such as "jobs.screening.score:score"

    def __get__(self, job: object, owner: type) -> Any:  # noqa: ANN401 - of any part
        """Imports the module and returns the function or value."""
        return self if job is None else pkgutil.resolve_name(self.target)

    def __call__(self, *args: Any) -> Any:  # noqa: ANN401 - of any function
        """Imports the module and calls the function."""
        return pkgutil.resolve_name(self.target)(*args)


def either(
    is_other: Callable[[Any], bool],
    other: Callable[Concatenate[Any, P], T],
    usual: Callable[Concatenate[Any, P], T],
) -> staticmethod[Concatenate[Any, P], T]:
    """A part of a job with two modes, chosen by the part's first argument.

        >>> class Example:
        ...     size = either(lambda value: isinstance(value, int), abs, len)
        >>> Example().size(-3), Example().size("four")
        (3, 4)

    Args:
        is_other: whether settings or data are of the other mode.
        other: called for them.
        usual: called for all others.
    """

    def part(first: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:  # noqa: ANN401 - of any mode
        return (other if is_other(first) else usual)(first, *args, **kwargs)

    return staticmethod(part)
