"""What holds for the house as a whole: imports, start-up, SQL, words, exports."""

from __future__ import annotations

import ast
import doctest
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import grimp
import pytest

from runner.cli.command_table import COMMANDS, LazyGroup

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("store", "runner", "jobs", "tui")
HEAVY = (
    *("textual", "rich", "litellm", "matplotlib", "opentelemetry"),
    *("scipy", "pandas", "sklearn", "pyarrow"),
)
SOURCES = sorted(path for name in PACKAGES for path in (ROOT / name).rglob("*.py"))


def _loaded(code: str) -> set[str]:
    """Top-level modules in memory after *code*, in a process of its own."""
    script = f"{code}\nimport sys\nprint(*{{m.partition('.')[0] for m in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return set(done.stdout.splitlines()[-1].split())


def _invoke(*words: str) -> str:
    return (
        "from runner.cli.main import exit_code\n"
        f"assert exit_code({list(words)!r}) in (0, 2)"
    )


def test_no_imports_form_a_circle_not_even_late_ones_or_those_for_types() -> None:
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=False)
    imported = {m: graph.find_modules_directly_imported_by(m) for m in graph.modules}
    TopologicalSorter(imported).prepare()  # a CycleError names the modules


@pytest.mark.parametrize(
    "code",
    [
        _invoke("--help"),
        _invoke("status", "no-such-run"),
        _invoke("run", "--help"),
        _invoke("report", "no-such-run"),
        "import runner.run.launch, runner.score.scoring",
        "import runner.scorecard, runner.scorecard, jobs.cli.report",
        "import jobs.paper_investigation.figures",
        "import jobs.evidence_retrieval.job, jobs.evidence_retrieval.score",
        "import jobs.screening.job, jobs.screening.score",
        "import store, store.read.tasks",
        (
            "import click\n"
            "from tui.watch import watch\n"
            "from store.errors import NoSuchRun\n"
            "try:\n    watch.main(['x', '--plain'], standalone_mode=False)\n"
            "except NoSuchRun:\n    import tui.plain"
        ),
    ],
)
def test_nothing_heavy_is_imported_by_what_does_not_need_it(code: str) -> None:
    assert not _loaded(code) & set(HEAVY)


@pytest.mark.parametrize("words", [("--help",), ("cancel", "no-such-run")])
def test_help_and_requests_import_neither_clients_nor_what_jobs_need(
    words: tuple[str, ...],
) -> None:
    assert not _loaded(_invoke(*words)) & {"httpx", "aiohttp", "numpy", "pydantic"}


def test_the_direct_way_does_not_pay_for_litellm() -> None:
    opened = (
        "from runner.clients import ClientOptions, open_client\n"
        "open_client('openai/x', ClientOptions())"
    )
    assert not _loaded(opened) & {"litellm", "openai"}


def test_no_module_holds_more_than_one_concept() -> None:
    long = {p.name: n for p in SOURCES if (n := len(p.read_text().splitlines())) > 600}
    assert not long  # more than one concept is likely above


def test_a_public_class_name_has_one_meaning() -> None:
    homes: dict[str, list[str]] = {}
    for path in SOURCES:
        for name in re.findall(r"^class ([A-Za-z]\w*)", path.read_text(), re.MULTILINE):
            homes.setdefault(name, []).append(str(path.relative_to(ROOT)))
    assert homes.keys() > {"Scorecard", "RunFolder"}
    assert not {name: files for name, files in homes.items() if len(files) > 1}


def test_sql_stands_in_sql_files_only() -> None:
    words = ("SELECT ", "INSERT ", "UPDATE ", "DELETE ", "CREATE ", "PRAGMA ")
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in SOURCES
        # parsing takes long, and most files have none of the words
        if any(word in (text := path.read_text()) for word in words)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.lstrip().startswith(words)
    ]
    assert not found


def test_every_verb_of_the_table_is_there_and_says_what_it_is_for() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from runner.cli.main import main; main()", "--help"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "siftlog" not in done.stderr
    group = LazyGroup()
    for name, verb in COMMANDS.items():
        command = group.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        assert command.help
        assert f"{name} " in done.stdout
        assert verb.help in done.stdout


def test_the_pinned_versions_name_no_host() -> None:
    text = (ROOT / "constraints.txt").read_text()
    assert "://" not in text
    assert "@" not in text


def test_the_examples_in_docstrings_hold() -> None:
    shown = [path for path in SOURCES if ">>>" in path.read_text("utf-8")]
    tried = 0
    for path in shown:
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        found = doctest.testmod(import_module(name))
        assert not found.failed, name
        tried += found.attempted
    assert tried > len(shown) > 0
