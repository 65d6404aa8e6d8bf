"""Words of a command line that no option of its verb took: files, and a job's settings.

Every setting of a job may be given by a flag of its own, which click cannot know.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from runner.errors import UsageError

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
