"""Defines options and arguments that several commands share, and their sources.

The order is: command line, environment (`SIFTLOG_<OPTION>`), configuration file,
default. click resolves the first two, `run_steps.engine_options` the rest.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from runner.errors import UsageError

C = TypeVar("C", bound=Callable[..., Any])

SHIP_EVERY_S: Final = 5.0
LEASE_TTL_S: Final = 15.0

ANY_SETTING: Final = {"ignore_unknown_options": True, "allow_extra_args": True}
"""Context of a command that accepts every job setting as a flag."""


def option(*names: str, **attributes: Any) -> Callable[[C], C]:
    """Return a click option that also reads `SIFTLOG_<NAME>`."""
    name = names[0].partition("/")[0].lstrip("-").replace("-", "_").upper()
    return click.option(*names, envvar=f"SIFTLOG_{name}", **attributes)


def options_of(*options: Callable[[Any], Any]) -> Callable[[C], C]:
    """Combine several options into one decorator; `--help` keeps their order."""

    def decorate(command: C) -> C:
        for decorator in reversed(options):
            command = decorator(command)
        return command

    return decorate


runs_dir = option(
    "--runs-dir",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    default=Path("runs"),
    show_default=True,
    help="Folder of runs.",
)
cache_dir = option(
    "--cache-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the response cache.  [default: the user's cache folder]",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON lines.")
as_form = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "latex"]),
    default="text",
    show_default=True,
    help="Format of tables; LaTeX uses booktabs and siunitx.",
)
filter_ = click.option(
    "--filter",
    "expression",
    default="",
    metavar="EXPR",
    help="Filter of tasks, such as 'state:failed -model:x latency>5s'.",
)
at = click.option(
    "--at",
    "moment_name",
    metavar="SEQ|TIME",
    help="As of an event or a time: 1200, 2026-01-31T09:30:00Z, or -10m before"
    " the end.",
)
run_argument = click.argument("run_name", metavar="RUN")
detach = click.option(
    "--detach", is_flag=True, help="Run in the background; output goes to run.log."
)
sets = click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="KEY=VALUE",
    help="Setting of the job; repeatable. siftlog jobs JOB lists them.",
)
config = click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    help="TOML file with options and a [settings] table; its paths are relative to it.",
)
no_score = click.option(
    "--no-score", is_flag=True, help="Record answers without scoring them."
)
strict = click.option(
    "--strict", is_flag=True, help="Exit with 6 if a finding is an error."
)
no_report = option("--no-report", is_flag=True, help="Skip the report and figures.")


def _figure_formats(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    """Check formats that are listed with commas, and return each once."""
    del context, parameter
    if not values:
        return ()
    from typing import get_args

    from runner.score.render import FigureFormat

    known = get_args(FigureFormat)
    formats = dict.fromkeys(
        word.strip().lower() for value in values for word in value.split(",")
    )
    for name in formats:
        if name not in known:
            raise UsageError(
                f"--figures {name}: not a format of figures; choose from "
                f"{', '.join(known)}."
            )
    return tuple(formats)


figures = option(
    "--figures",
    multiple=True,
    metavar="FORMAT,...",
    callback=_figure_formats,
    help="Formats of figure files: svg, png, pdf.  [default: svg,png]",
)
output_dir = click.option(
    "--output-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Also copy the scoring's files there; for a run that builds data, "
    "only its data.",
)


new_run = options_of(
    config,
    sets,
    option(
        "--run-id",
        metavar="ID",
        help="Id of the run.  [default: the time and the job]",
    ),
    runs_dir,
)
"""Options of every command that creates a run."""

imported_run = options_of(
    config,
    sets,
    option("--run-id", "--as", "run_id", metavar="ID", help="Id of the run."),
    runs_dir,
)
"""The same of an import, whose id may be named as that of a fork is."""


model_options = options_of(
    option(
        "--model", multiple=True, metavar="MODEL", help="Model to call; repeatable."
    ),
    option(
        "--judge-model",
        metavar="MODEL",
        help="Model that judges answers, for jobs with a judge stage.",
    ),
    option(
        "--embed-model",
        metavar="MODEL",
        help="Model that makes embeddings, for jobs with an embed stage.",
    ),
    option(
        "--rerank-model",
        metavar="MODEL",
        help="Model that reranks, for jobs with a rerank stage.",
    ),
    option(
        "--replicates",
        type=int,
        help="Number of replicates of each item.  [default: 1]",
    ),
)
"""Models and number of calls per task: fixed once a run has started."""


parameters = options_of(
    option(
        "--temperature",
        metavar="NUMBER",
        help="Sampling temperature; none: do not send it.",
    ),
    option(
        "--top-p",
        metavar="NUMBER",
        help="Share of likely tokens to sample from; none: do not send it.",
    ),
    option("--model-seed", type=int, metavar="N", help="Sampling seed."),
    option(
        "--reasoning-effort",
        metavar="LEVEL",
        help="Reasoning effort, as the model names it: low, medium, high, ...",
    ),
    option("--thinking", metavar="JSON", help="Thinking parameter, sent as given."),
    option(
        "--service-tier",
        metavar="TIER",
        help="Service tier, as the provider names it: flex, priority, ...",
    ),
    option(
        "--extra-body",
        metavar="JSON",
        help="Extra fields of request bodies, as a JSON object.",
    ),
    option(
        "--extra-headers",
        metavar="JSON",
        help="Extra headers, as a JSON object; env:NAME reads an environment variable.",
    ),
    option(
        "--drop-refused/--no-drop-refused",
        default=None,
        help="Omit a parameter that the endpoint refuses, instead of stopping.",
    ),
)
"""Request parameters for every model without its own. The maximum reply length of a job
is a job setting; max_output_tokens in a file takes precedence over it."""


engine_options = options_of(
    parameters,
    option(
        "--base-url",
        metavar="URL",
        help="Address of an OpenAI-compatible endpoint.",
    ),
    option(
        "--api",
        type=click.Choice(["auto", "chat", "responses"]),
        help="API for chats sent to OpenAI and to --base-url; auto: responses for "
        "models without chat completions.  [default: auto]",
    ),
    option(
        "--api-key-env",
        metavar="NAME",
        help="Environment variable that holds the API key.  [openai/: OPENAI_API_KEY]",
    ),
    option(
        "--concurrency",
        type=int,
        help="Maximum concurrent calls per model.  [default: 256]",
    ),
    option(
        "--rpm",
        type=float,
        help="Maximum requests per minute, per model.",
    ),
    option(
        "--tpm",
        type=float,
        help="Maximum tokens per minute, per model.",
    ),
    option(
        "--rate-share",
        type=int,
        help="Number of processes that share these limits evenly.  [default: 1, or"
        " the number of shards]",
    ),
    option(
        "--timeout-s",
        type=float,
        metavar="SECONDS",
        help="Timeout of one attempt.  [default: 300]",
    ),
    option(
        "--deadline-s",
        type=float,
        metavar="SECONDS",
        help="Timeout of one task, including retries.  [default: 3600]",
    ),
    option(
        "--grace-s",
        type=float,
        metavar="SECONDS",
        help="How long to wait for calls in flight on drain.  [default: 30]",
    ),
    option(
        "--unknown",
        type=click.Choice(["retry", "hold"]),
        help="Retry or hold tasks whose call had no recorded outcome after a "
        "crash.  [default: retry]",
    ),
    option(
        "--cache/--no-cache",
        default=None,
        help="Read answers from the response cache, and add new ones to it.",
    ),
    cache_dir,
    option(
        "--batch/--no-batch",
        default=None,
        help="Use the provider's batch API: half the price, up to 24 hours.",
    ),
    option(
        "--batch-requests",
        type=int,
        help="Maximum requests per batch.  [default: 1000]",
    ),
    option(
        "--batch-poll-s",
        type=float,
        metavar="SECONDS",
        help="Initial polling interval for batches.  [default: 60]",
    ),
    option(
        "--batch-adopt/--no-batch-adopt",
        default=None,
        help="Adopt batches of a run with this id whose log is lost.",
    ),
    option(
        "--stop-if",
        multiple=True,
        metavar="WHAT>SHARE%",
        help="Stop a model when significantly more than this share of its replies "
        "is unusable, truncated, empty, unparsed, refused, filtered or "
        "failed; repeatable; off: never.  [default: unusable>50%]",
    ),
    option(
        "--price",
        metavar="IN,OUT[,CACHED]",
        help="USD per million tokens, for models without a configured price.",
    ),
    option(
        "--budget",
        type=float,
        metavar="USD",
        help="Total budget in USD, across resumes.",
    ),
    option(
        "--allow-unknown-price",
        is_flag=True,
        default=None,
        help="Run models with unknown prices; their costs show as ?.",
    ),
)
"""Options for sending calls: on every command that sends any."""


stops = options_of(
    option(
        "--stop-when-decided",
        metavar="METRIC[>=MARGIN]",
        help="With two models: end when the metric shows which is better, or that "
        "they differ by less than the margin.",
    ),
    option(
        "--alpha",
        type=float,
        help="Error probability of --stop-when-decided.  [default: 0.05]",
    ),
)
"""Conditions that end a run early: fixed once it has started."""


def engine_options_of_run(command: C) -> C:
    """Apply the engine options to a command that keeps those of a run by default."""
    others = len(getattr(command, "__click_params__", ()))
    engine_options(command)
    for engine_option in command.__click_params__[others:]:  # type: ignore[attr-defined]
        engine_option.help = re.sub(
            r"\[default: .*\]", "[default: the run's]", engine_option.help
        )
    return command


carrying = options_of(
    option(
        "--local-dir",
        type=click.Path(path_type=Path, file_okay=False),
        help="With shards: folder for this shard's log, on a local disk.  "
        "[default: as --runs-dir]",
    ),
    option(
        "--ship",
        metavar="DIR|URL",
        help="With shards: copy the log there in immutable files.",
    ),
    option(
        "--ship-every",
        type=click.FloatRange(min=0.1),
        default=SHIP_EVERY_S,
        show_default=True,
        metavar="SECONDS",
        help="Maximum delay of that copy.",
    ),
    click.option(
        "--accept-loss",
        is_flag=True,
        help="Continue although a damaged log lost recorded events; their answers "
        "may be paid for again.",
    ),
    # set by the process that places shards, not by users
    option("--broker", metavar="HOST:PORT", hidden=True),
)
"""Locations of shard logs: on every command that may run several shards."""

parts = options_of(
    option(
        "--shard",
        metavar="I/N",
        help="Process one part of the run only, from 0/N to N-1/N.",
    ),
    carrying,
)
"""The part of a run that a process takes, and the location of its log."""


placing = options_of(
    option(
        "--engine",
        type=click.Choice(["processes", "ray"]),
        help="Split the run into shards, and run them as local processes or on a "
        "Ray cluster.",
    ),
    option(
        "--shards",
        type=click.IntRange(1, 1024),
        help="Number of shards, 1 to 1024.  [default: the number of CPUs]",
    ),
    option(
        "--address",
        metavar="ADDRESS",
        help="Address of the Ray cluster.  [default: start a local one]",
    ),
    option(
        "--lease-ttl-s",
        type=click.FloatRange(1),
        default=LEASE_TTL_S,
        hidden=True,
        help="How long a shard may stay silent.",
    ),
)
"""Placement of the shards of a run: on every command for whole runs."""


def variables() -> frozenset[str]:
    """Return the environment variables that set an option."""

    @new_run
    @model_options
    @engine_options
    @stops
    @parts
    @placing
    @no_report
    @figures
    def every(**parameters: Any) -> None:
        del parameters

    options = click.command(every).params
    return frozenset(
        parameter.envvar for parameter in options if isinstance(parameter.envvar, str)
    )


def read_dotenv(environment: Mapping[str, str]) -> dict[str, str]:
    """Return *environment* with defaults from the `.env` of the current folder."""
    if not Path(".env").is_file():
        return dict(environment)
    from dotenv import dotenv_values

    added = {key: value for key, value in dotenv_values(".env").items() if value}
    return {**added, **environment}


def environment() -> dict[str, str]:
    """Return the environment of this process with defaults from `.env`."""
    return read_dotenv(os.environ)


ALIASES = {"bench-path": "bench"}
"""Flag names that users know from earlier tools."""


def split_words(
    words: Sequence[str],
    switches: Container[str] = (),
    file_lists: Container[str] = (),
) -> tuple[list[str], list[str]]:
    """Separate plain words, such as files, from `--name value` flags.

    Args:
        words: the words that are not options of the command.
        switches: boolean settings: the next word is not their value.
        file_lists: settings that take several files: they take all plain words that
            follow, as a shell expands `--name *.csv`.
    """
    plain: list[str] = []
    flags: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            plain.append(word)
            continue
        flags.append(word)
        has_value = "=" not in word and _setting(word[2:]) not in switches
        if has_value and rest and not rest[0].startswith("--"):
            flags.append(rest.pop(0))
            while (
                _setting(word[2:]) in file_lists
                and rest
                and not rest[0].startswith("--")
            ):
                flags += [word, rest.pop(0)]
    return plain, flags


def job_settings(words: Sequence[str], sets: Sequence[str]) -> dict[str, list[str]]:
    """Parse job settings: `--name value`, `--name=value`, `--set name=value`.

    Args:
        words: the words that are not options of the command.
        sets: the values of `--set`.

    Raises:
        UsageError: a word has another form.
    """
    typed: dict[str, list[str]] = {}
    for text in sets:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--set {text}: write it as --set name=value.")
        typed.setdefault(_setting(name), []).append(value)
    plain, flags = split_words(words)
    if plain:
        raise UsageError(
            f"Unexpected {plain[0]!r}; settings are given as --name value."
        )
    while flags:
        name, equals, value = flags.pop(0)[2:].partition("=")
        if not equals:
            # a flag without a value is a switch
            is_switch = not flags or flags[0].startswith("--")
            value = "true" if is_switch else flags.pop(0)
        typed.setdefault(_setting(name), []).append(value)
    return typed


def _setting(name: str) -> str:
    return ALIASES.get(name, name).replace("-", "_")
