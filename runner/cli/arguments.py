"""Options and arguments that several commands share, and where their values come from.

The order is: command line, environment (`SIFTLOG_<OPTION>`), configuration file,
default. click resolves the first two, `run_steps.engine_options` the rest.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from runner.errors import UsageError

C = TypeVar("C", bound=Callable[..., Any])

SHIP_EVERY_S: Final = 5.0
LEASE_TTL_S: Final = 15.0

ANY_SETTING: Final = {"ignore_unknown_options": True, "allow_extra_args": True}
"""Context of a command that takes every setting of a job as a flag of its own."""


def option(*names: str, **attributes: Any) -> Callable[[C], C]:
    """A click option that also reads `SIFTLOG_<NAME>`."""
    name = names[0].partition("/")[0].lstrip("-").replace("-", "_").upper()
    return click.option(*names, envvar=f"SIFTLOG_{name}", **attributes)


def options_of(*options: Callable[[Any], Any]) -> Callable[[C], C]:
    """Several options as one decorator; `--help` shows them in this order."""

    def decorate(command: C) -> C:
        for decorator in reversed(options):
            command = decorator(command)
        return command

    return decorate


runs_dir = option(
    "--runs-dir",
    type=click.Path(path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Folder that holds the runs.",
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
    help="Form of tables; LaTeX uses booktabs and siunitx.",
)
filter_ = click.option(
    "--filter",
    "expression",
    default="",
    metavar="EXPR",
    help="Tasks to take, such as 'state:failed -model:x latency>5s'.",
)
at = click.option(
    "--at",
    "moment_name",
    metavar="SEQ|TIME",
    help="As it was after that event or at that time: 1200, 2026-01-31T09:30:00Z, or "
    "-10m before the end.",
)
run_argument = click.argument("run_name", metavar="RUN")
detach = click.option(
    "--detach", is_flag=True, help="Go on without the terminal; output in run.log."
)
sets = click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting of the job; repeatable.",
)
config = click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    help="TOML file with options and a [settings] table; paths in it begin there.",
)
no_score = click.option("--no-score", is_flag=True, help="Only record the answers.")
strict = click.option(
    "--strict", is_flag=True, help="Exit with 6 if a finding is an error."
)
no_report = option("--no-report", is_flag=True, help="Draw neither report nor figures.")
output_dir = click.option(
    "--output-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Copy the scoring's files there too; of a run that builds data, those alone.",
)


new_run = options_of(
    config,
    sets,
    option("--run-id", help="Name of the run.  [default: the time and the job]"),
    runs_dir,
)
"""The options of every verb that makes a new run."""


model_options = options_of(
    option("--model", multiple=True, help="Model to ask; repeatable."),
    option("--judge-model", help="Model that judges answers, where the job asks one."),
    option("--embed-model", help="Model that makes vectors, where the job asks one."),
    option("--rerank-model", help="Model that ranks, where the job asks one."),
    option("--replicates", type=int, help="Times each item is asked.  [default: 1]"),
)
"""Which models are asked, and how often: fixed for a run once it has begun."""


parameters = options_of(
    option("--temperature", help="Of sampling; none: not sent."),
    option("--top-p", help="Of sampling; none: not sent."),
    option("--model-seed", type=int, help="Seed of sampling."),
    option("--reasoning-effort", help="As the model knows it: low, medium, high, ..."),
    option("--thinking", metavar="JSON", help="Turns reasoning on or off."),
    option("--service-tier", help="As the provider knows it: flex, priority, ..."),
    option(
        "--extra-body", metavar="JSON", help="Further fields of requests, as an object."
    ),
    option(
        "--extra-headers",
        metavar="JSON",
        help="Further headers, as an object; env:NAME is a variable's value.",
    ),
    option(
        "--drop-refused/--no-drop-refused",
        default=None,
        help="Leave out a parameter that was set here and that the endpoint refuses, "
        "instead of stopping.",
    ),
)
"""Parameters of requests, for every model without its own. A job's longest reply is its
own setting; max_output_tokens in a file outranks that."""


engine_options = options_of(
    parameters,
    option("--base-url", help="Address of an OpenAI-compatible endpoint."),
    option(
        "--api",
        type=click.Choice(["auto", "chat", "responses"]),
        help="Form of chats sent to OpenAI and to --base-url; auto: responses "
        "for models without a chat form.  [default: auto]",
    ),
    option("--api-key-env", help="Variable with the key.  [openai/: OPENAI_API_KEY]"),
    option(
        "--concurrency",
        type=int,
        help="Calls at a time, for each model, at most.  [default: 256]",
    ),
    option("--rpm", type=float, help="Requests a minute, for each model."),
    option("--tpm", type=float, help="Tokens a minute, for each model."),
    option(
        "--rate-share",
        type=int,
        help="Processes that keep to these limits together: each takes an even part.  "
        "[default: 1, or as many as there are shards]",
    ),
    option("--timeout-s", type=float, help="One attempt, at most.  [default: 300]"),
    option("--deadline-s", type=float, help="One task with retries.  [default: 3600]"),
    option(
        "--grace-s", type=float, help="How long a drain waits for calls.  [default: 30]"
    ),
    option(
        "--unknown",
        type=click.Choice(["retry", "hold"]),
        help="Ask calls again that a crash left without outcome, or hold their tasks.  "
        "[default: retry]",
    ),
    option(
        "--cache/--no-cache",
        default=None,
        help="Take answers of earlier runs from the response cache, and keep these.",
    ),
    cache_dir,
    option(
        "--batch/--no-batch",
        default=None,
        help="Ask by the provider's batches: within 24 hours, at half the price.",
    ),
    option(
        "--batch-requests",
        type=int,
        help="Requests in a batch, at most.  [default: 1000]",
    ),
    option(
        "--batch-poll-s",
        type=float,
        help="Between two looks at a batch, at first.  [default: 60]",
    ),
    option(
        "--batch-adopt/--no-batch-adopt",
        default=None,
        help="Take over batches of a run of this name whose log is lost.",
    ),
    option(
        "--stop-if",
        multiple=True,
        metavar="WHAT>SHARE%",
        help="Stop a model once more than this share of its replies is unusable, "
        "truncated, empty, unparsed, refused, filtered or failed, beyond chance; "
        "repeatable; off: never.  [default: unusable>50%]",
    ),
    option(
        "--price",
        metavar="IN,OUT[,CACHED]",
        help="Dollars a million tokens, for each model without prices of its own.",
    ),
    option(
        "--budget",
        type=float,
        metavar="USD",
        help="What the run may cost, over all its resumes.",
    ),
    option(
        "--allow-unknown-price",
        is_flag=True,
        default=None,
        help="Run though a price is unknown; costs are then shown as ?.",
    ),
)
"""How calls are sent: on every verb that sends some."""


stops = options_of(
    option(
        "--stop-when-decided",
        metavar="METRIC[>=MARGIN]",
        help="Of two models: end once the metric says which is better, or that "
        "neither is by more than the margin.",
    ),
    option(
        "--alpha",
        type=float,
        help="Chance that this decision is wrong, at most.  [default: 0.05]",
    ),
)
"""When a run ends before all is answered: fixed for it once it has begun."""


carrying = options_of(
    option(
        "--local-dir",
        type=click.Path(path_type=Path, file_okay=False),
        help="Of a shard: folder for its log, on a disk of this machine.  [default: "
        "as --runs-dir]",
    ),
    option(
        "--ship",
        metavar="DIR|URL",
        help="Of a shard: carry what is recorded there, as files that never change.",
    ),
    option(
        "--ship-every",
        type=click.FloatRange(min=0.1),
        default=SHIP_EVERY_S,
        show_default=True,
        metavar="SECONDS",
        help="How long what is recorded may wait for that.",
    ),
    click.option(
        "--accept-loss",
        is_flag=True,
        help="Go on although recorded events were lost with a damaged log: their "
        "answers may be paid for again.",
    ),
    # who places shards gives it to them: nobody types it
    option("--broker", metavar="HOST:PORT", hidden=True),
)
"""Where logs of shards lie: on every verb that may have several at work."""

parts = options_of(
    option(
        "--shard",
        metavar="I/N",
        help="Take this part of the run, from 0/N on, and no other.",
    ),
    carrying,
)
"""Which part of a run a process takes, and where it keeps it."""


placing = options_of(
    option(
        "--engine",
        type=click.Choice(["processes", "ray"]),
        help="Split the run into shards, and place them as processes of this machine "
        "or on a Ray cluster.",
    ),
    option(
        "--shards",
        type=click.IntRange(1, 1024),
        help="How many it places.  [default: the processors of this machine]",
    ),
    option("--address", help="Of the Ray cluster.  [default: a Ray of its own]"),
    option(
        "--lease-ttl-s",
        type=click.FloatRange(1),
        default=LEASE_TTL_S,
        hidden=True,
        help="For how long a shard may be silent.",
    ),
)
"""Who places the shards of a run: on every verb that works on whole runs."""


def variables() -> frozenset[str]:
    """The variables of the environment that set an option."""

    @new_run
    @model_options
    @engine_options
    @stops
    @parts
    @placing
    @no_report
    def every(**parameters: Any) -> None:
        del parameters

    options = click.command(every).params
    return frozenset(
        parameter.envvar for parameter in options if isinstance(parameter.envvar, str)
    )


def read_dotenv(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment, with what a `.env` in this folder adds to it."""
    if not Path(".env").is_file():
        return dict(environment)
    from dotenv import dotenv_values

    added = {key: value for key, value in dotenv_values(".env").items() if value}
    return {**added, **environment}


def environment() -> dict[str, str]:
    """The environment of this process with `.env` beneath it."""
    return read_dotenv(os.environ)


ALIASES = {"bench-path": "bench"}
"""Flags that users of the tools before siftlog have in their fingers."""


def split_words(
    words: Sequence[str],
    switches: Container[str] = (),
    file_lists: Container[str] = (),
) -> tuple[list[str], list[str]]:
    """Plain words, such as files, apart from `--name value` and `--name=value`.

    Args:
        words: what no option of the verb took.
        switches: settings that are on or off: what follows them is plain too.
        file_lists: settings that name several files: all plain words that follow them
            are theirs, as a shell expands `--name *.csv`.
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
    """Job settings as typed: `--name value`, `--name=value` and `--set name=value`.

    Args:
        words: what no option of the verb took.
        sets: the values of `--set`.

    Raises:
        UsageError: a word is neither.
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
