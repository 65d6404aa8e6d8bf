"""Compare what the product prints and writes with what it printed and wrote before.

    python -m tests.golden check              every output, named where it differs
    python -m tests.golden check --only 'errors/*' --json
    python -m tests.golden check --tree ../other      another checkout of the product
    python -m tests.golden take               the outputs of this code, from now on
    python -m tests.golden speed --against ../other   CPU time, as ratios

The exit code of `check` is 0 where all outputs are equal, else 1. Look at each
difference before you take the outputs anew: design/harness.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path

from tests.golden import manifest
from tests.golden.cases import JOBS, Case, error_cases, help_cases
from tests.golden.manifest import Difference, entry_of, is_wanted
from tests.golden.runs import run_cases, screen_cases
from tests.golden.samples import import_cases, real_cases, realdata_folder, sample_cases
from tests.golden.spoiled import spoiled_cases
from tests.golden.taking import Tree, take

ROOT = Path(__file__).resolve().parents[2]
SHOWN = 8
"""Outputs whose difference is shown."""


def all_cases(tree: Tree) -> list[Case]:
    """Every case there is, the long ones first: they are spread over two processes."""
    samples = {job: tree.sample(job) for job in JOBS}
    return [
        *sample_cases(samples),
        *import_cases(),
        *run_cases(),
        *help_cases(),
        *error_cases(),
        *spoiled_cases(tree.sample),
        *screen_cases(),
        *real_cases(ROOT),
    ]


def wanted_cases(tree: Tree, patterns: Sequence[str]) -> list[Case]:
    """The cases that may make an output whose name fits one of the patterns."""
    return [
        case
        for case in all_cases(tree)
        if not patterns or any(_may_fit(case.name, each) for each in patterns)
    ]


def _may_fit(case: str, pattern: str) -> bool:
    """Whether an output of a case may fit a pattern: by parts, as far as both go."""
    *parts, last = pattern.split("/")
    names = case.split("/")
    if not all(fnmatchcase(n, p) for n, p in zip(names, parts, strict=False)):
        return False
    is_inside = len(parts) >= len(names)
    return is_inside or last.startswith("*") or fnmatchcase(names[len(parts)], last)


def take_command(options: argparse.Namespace) -> int:
    """Make the outputs and store them."""
    tree = Tree(root=options.tree.resolve())
    made = take(tree, wanted_cases(tree, options.only), width=options.width)
    entries, texts = manifest.read_manifest(), manifest.read_texts()
    if options.only:
        kept = {name for name in entries if not is_wanted(name, options.only)}
        made = {k: v for k, v in made.items() if is_wanted(k, options.only)}
    else:
        kept = set()
    entries = {name: entries[name] for name in kept}
    texts = {name: texts[name] for name in kept if name in texts}
    manifest.write_manifest(entries | {k: entry_of(v) for k, v in made.items()})
    manifest.write_texts(texts | made)
    print(f"{len(made)} outputs taken, {sum(map(len, made.values())):,} characters.")
    return 0


def check_command(options: argparse.Namespace) -> int:
    """Make the outputs and compare them with those that were taken."""
    tree = Tree(root=options.tree.resolve())
    began = time.perf_counter()
    cases = wanted_cases(tree, options.only)
    after = take(tree, cases, width=options.width)
    if options.against:
        before = take(Tree(root=options.against.resolve()), cases, width=options.width)
        entries = {name: entry_of(text) for name, text in before.items()}
    else:
        entries, before = manifest.read_manifest(), manifest.read_texts()
    after = {k: v for k, v in after.items() if is_wanted(k, options.only)}
    entries = {k: v for k, v in entries.items() if is_wanted(k, options.only)}
    if realdata_folder(ROOT) is None:
        entries = {k: v for k, v in entries.items() if not k.startswith("realdata/")}
        print("Real data is absent: its outputs are left out.", file=sys.stderr)
    found = list(manifest.differences(entries, after))
    took = time.perf_counter() - began
    if options.json:
        for each in found:
            print(json.dumps({"output": each.name, "is": each.kind}))
    else:
        _show(found, before, after)
    compared = len({*entries, *after})
    print(
        f"{compared} outputs, {compared - len(found)} equal, {len(found)} not; "
        f"{took:.0f} s",
        file=sys.stderr if options.json else sys.stdout,
    )
    return 1 if found else 0


def _show(
    found: Sequence[Difference], before: Mapping[str, str], after: Mapping[str, str]
) -> None:
    for each in found:
        print(f"{each.kind:8} {each.name}")
    for each in islice((d for d in found if d.kind == "changed"), SHOWN):
        print(f"\n{manifest.shown(each.name, before.get(each.name), after[each.name])}")
    if found:
        rooms = Counter("/".join(each.name.split("/")[:3]) for each in found)
        print("differences by case:")
        for room, n in rooms.most_common():
            print(f"{n:5}  {room}")


def speed_command(options: argparse.Namespace) -> int:
    """Measure CPU time, of one checkout or of two in turn."""
    from tests.golden.speed import measure, table  # noqa: PLC0415 - not for checks

    trees = [Tree(root=options.tree.resolve())]
    if options.against:
        trees.insert(0, Tree(root=options.against.resolve()))
    names = [tree.root.name for tree in trees]
    found = []
    for series in measure(trees, rounds=options.rounds, only=options.only):
        found.append(series)
        print(table([series], names), file=sys.stderr)
    print(table(found, names), end="")
    return 0


def main(arguments: Sequence[str]) -> int:
    """Read the command line and do what it names."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, function in (("take", take_command), ("check", check_command)):
        command = commands.add_parser(name, help=function.__doc__)
        command.set_defaults(function=function)
        command.add_argument(
            "--only",
            action="append",
            default=[],
            metavar="GLOB",
            help="names; repeatable",
        )
        command.add_argument("--tree", type=Path, default=ROOT, help="code to execute")
        command.add_argument("--width", type=int, default=3, help="processes at a time")
        if name == "check":
            command.add_argument("--json", action="store_true", help="JSON lines")
            command.add_argument(
                "--against", type=Path, help="make both from code: compare with TREE"
            )
    speed = commands.add_parser("speed", help=speed_command.__doc__)
    speed.set_defaults(function=speed_command)
    speed.add_argument("--tree", type=Path, default=ROOT, help="code to measure")
    speed.add_argument("--against", type=Path, help="code of before: ratios to it")
    speed.add_argument("--rounds", type=int, default=15, help="of the quick measures")
    speed.add_argument("--only", action="append", default=[], help="part of a name")
    options = parser.parse_args(arguments)
    result: int = options.function(options)
    return result


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
