"""Runs of ask: the sample, questions, chunks, follow-ups, checks and bad input."""

from __future__ import annotations

import json
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from jobs.ask.inputs import SAMPLE, load
from jobs.ask.job import job
from jobs.ask.merge import MergedReplies, item_answers, place_of
from jobs.ask.plan import parser_of
from jobs.ask.settings import AskSettings, recipe_of
from jobs.kit.fields.prompts import definition
from jobs.kit.fields.spec import FieldSpec
from jobs.kit.testing import MemoryAnswers
from runner.job import ModelLimits, Task
from store.database import open_reader
from store.read.status import run_started
from tests.commands import Done, siftlog
from tests.jobs.ask.make_sample import PAPERS, pdf

TEXTS = {
    "a": "We enrolled 12 men. They took 5 mg daily.",
    "b": "We enrolled 30 women. They took 7 mg daily.",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    papers = tmp_path / "papers"
    papers.mkdir()
    for name, text in TEXTS.items():
        (papers / f"{name}.txt").write_text(text)
    return tmp_path


def run(folder: Path, *words: object, check: bool = True) -> Done:
    done = siftlog("run", "ask", *words, cwd=folder, check=check)
    assert "Traceback" not in done.stderr, done.stderr
    return Done(code=done.returncode, out=done.stdout, err=done.stderr)


def asked(
    folder: Path, recipe: str, reply: Any, **settings: Any
) -> list[MergedReplies]:
    """The merged answers of a run in which a function stands for the model."""
    (folder / "r.toml").write_text(f'items = "papers/"\n{recipe}')
    dataset = load(AskSettings(recipe=folder / "r.toml", **settings))
    answers = MemoryAnswers.of_run(job, dataset, reply)
    return list(item_answers(dataset.recipe, answers, parser_of(dataset)))


def test_the_sample_runs_without_input_and_is_scored_again(tmp_path: Path) -> None:
    done = run(tmp_path, "--run-id", "s")
    assert "using the sample that ships with ask" in done.err
    assert siftlog("score", "s", cwd=tmp_path).returncode == 0
    bundle = json.loads(
        siftlog("bundle", "s", "--redact", "--json", cwd=tmp_path).stdout
    )
    checked = siftlog("verify", bundle["file"], "--json", cwd=tmp_path).stdout
    redacted = json.loads(checked)["redacted"]
    assert redacted["recomputed"] == redacted["metrics"] > 0


def test_the_log_has_the_recipe_so_its_file_may_move(folder: Path) -> None:
    text = 'items = "papers/"\n[fields.n]\nask = "How many?"\n'
    recipe = folder / "r.toml"
    recipe.write_text(text)
    run(folder, "--recipe", "r.toml", "--run-id", "r", "--no-score")
    recipe.unlink()
    assert siftlog("score", "r", cwd=folder).returncode == 0
    with open_reader(folder / "runs" / "r" / "log.db") as reader:
        settings = json.loads(run_started(reader).settings)
    assert settings["recipe_text"] == text
    assert settings["recipe_sha256"] == sha256(text.encode()).hexdigest()


def test_a_run_of_several_files_resumes_until_one_changes(folder: Path) -> None:
    rows = "".join(f"{name},papers/{name}.txt\n" for name in TEXTS)
    (folder / "t.csv").write_text(f"id,file\n{rows}")
    words = ("--question", "How many?", "--no-score")
    run(folder, "--papers", "papers/*.txt", *words, "--run-id", "g")
    run(folder, "--papers", "t.csv", "--document", "file", *words, "--run-id", "t")
    for name in ("g", "t"):
        assert siftlog("resume", name, cwd=folder).returncode == 0
    (folder / "papers" / "b.txt").write_text("Another text.")
    for name in ("g", "t"):
        done = siftlog("resume", name, cwd=folder, check=False)
        assert "b.txt" in done.stderr
        assert "is not what the run was started with" in done.stderr


def test_the_prompt_begins_with_what_is_the_same_for_all_papers(folder: Path) -> None:
    settings = AskSettings(
        papers=(folder / "papers",), question=("How many?",), type=("integer",)
    )
    dataset = load(settings)
    first, second = (
        job.request(dataset, Task(number=1, stage="ask", key=k, model="m", replicate=1))
        for k in ("a", "b")
    )
    assert first.messages[0] == second.messages[0]
    assert first.schema == second.schema
    assert "- answer (integer, with quote): How many?" in first.messages[0].text
    assert TEXTS["a"] in first.messages[1].text


def test_follow_ups_depend_on_answers_and_checks_on_quotes(folder: Path) -> None:
    recipe = """
    [fields.n]
    ask = "How many?"
    type = "integer"
    quote = true
    [[then]]
    when = "n > 20"
    [then.fields.dose]
    ask = "Which dose?"
    type = "number"
    unit = "mg"
    quote = true
    [[check]]
    by = "judge"
    """
    sent: list[tuple[str, str, str | None]] = []

    def reply(task: Task) -> str:
        sent.append((task.stage, task.key, task.context))
        if task.stage == "judge":
            (name,) = json.loads(task.context or "")
            return json.dumps({name: {"reason": "", "verdict": "supported"}})
        if task.stage == "then":
            return '{"dose": {"quote": "invented words", "value": 7, "unit": "mg"}}'
        n = {"a": 12, "b": 30}[task.key]
        return json.dumps({"n": {"quote": f"We enrolled {n}", "value": n}})

    a, b = asked(folder, recipe, reply)
    assert [(stage, key) for stage, key, _ in sent] == [
        ("ask", "a"),
        ("judge", "a/check1"),
        ("ask", "b"),
        ("then", "b/then1"),
        ("judge", "b/check1"),
    ]
    assert (a.fields["n"].value, a.checks["n"][0].verdict) == (12, "supported")
    assert "dose" not in a.fields
    assert b.fields["dose"].value == 7
    # an invented quote is not verified: it is known to be wrong
    assert b.fields["dose"].is_grounded is False
    assert "dose" not in b.checks


def test_a_check_gets_the_type_and_the_unit_of_a_value() -> None:
    dose = FieldSpec(ask="?", type="number", unit="mg")
    arms = FieldSpec.model_validate(
        {
            "ask": "?",
            "type": "list of objects",
            "fields": {"dose": {"ask": "?", "type": "number", "unit": "mg"}},
        }
    )
    assert definition(dose) == "number in mg"
    assert definition(arms) == "list of objects (dose: number in mg)"


def test_a_field_that_no_check_verified_has_no_count_of_support(folder: Path) -> None:
    (folder / "r.toml").write_text("""
    items = "papers/"
    [fields.n]
    ask = "How many people were enrolled?"
    type = "integer"
    quote = true
    [fields.year]
    ask = "When?"
    type = "date"
    [[check]]
    fields = ["n"]
    """)
    lines = run(folder, "--recipe", "r.toml", "--no-report").out.split("\n")
    at = next(n for n, line in enumerate(lines) if line.endswith("supported"))
    assert lines[at + 1].split()[-1] == "2"
    assert lines[at + 2].split()[-1] == "-"


def test_chunks_are_merged_by_type(folder: Path) -> None:
    sentences = [f"Sentence {n} says that the value is {n}." for n in range(60)]
    (folder / "papers" / "a.txt").write_text(" ".join(sentences))
    (folder / "papers" / "b.txt").unlink()
    recipe = """
    chunk = { tokens = 200, overlap = 20 }
    [fields.n]
    ask = "n"
    type = "integer"
    quote = true
    [fields.yes]
    ask = "yes"
    type = "boolean"
    [fields.all]
    ask = "all"
    type = "list"
    """

    def reply(task: Task) -> str:
        assert task.stage == "chunk"
        number = place_of(task).chunk
        quote = "Nowhere." if number == 1 else f"the value is {number}."
        return json.dumps(
            {
                "n": {"quote": quote, "value": number},
                "yes": number != 1,
                "all": [f"x{number}", "x"] if number < 3 else [],
            }
        )

    (a,) = asked(folder, recipe, reply)
    assert a.chunks > 2
    # the first value with a quote that is in the text, most votes, the union
    assert a.fields["n"].value == 2
    assert a.fields["n"].chunk == 2
    assert a.fields["yes"].value is True
    assert a.fields["all"].value == ("x1", "x", "x2")


def test_a_field_without_any_answer_has_a_reason(folder: Path) -> None:
    (folder / "papers" / "c.txt").write_text("Some text.")
    recipe = '[fields.n]\nask = "How many?"\n'
    replies = {"a": None, "b": "no idea", "c": '{"n": null}'}
    a, b, c = asked(folder, recipe, lambda task: replies[task.key])
    assert a.failed == {"n": "ServerError"}
    assert b.failed == {"n": "no_json"}
    assert not c.failed
    assert c.fields["n"].value is None


def test_a_quote_has_page_and_section(tmp_path: Path) -> None:
    papers = tmp_path / "papers"
    papers.mkdir()
    (papers / "p.pdf").write_bytes(pdf(*PAPERS["iron-runners.pdf"]))
    shutil.copy(SAMPLE / "papers" / "yoga-back.md", papers)
    quotes = {
        # over the end of a line
        "p": "The iron group received 65 mg of elemental iron once daily. Ferritin was "
        "measured at baseline",
        "yoga-back": "Classes took 75 minutes.",
    }
    recipe = '[fields.n]\nask = "?"\nquote = true\n'
    p, yoga = asked(
        tmp_path,
        recipe,
        lambda task: json.dumps({"n": {"quote": quotes[task.key], "value": "x"}}),
    )
    (quote,) = p.fields["n"].quotes
    assert (quote.page, quote.level.value) == (2, "normalised")
    (quote,) = yoga.fields["n"].quotes
    assert quote.page is None
    assert quote.section.endswith("Methods")


def test_pages_are_shown_to_a_model_that_sees(tmp_path: Path) -> None:
    papers = tmp_path / "papers"
    papers.mkdir()
    (papers / "scan.pdf").write_bytes(pdf("", "", ""))
    (papers / "text.pdf").write_bytes(pdf(*PAPERS["iron-runners.pdf"]))
    settings = AskSettings(papers=(papers,), question=("Why?",), vision=True)
    dataset = load(settings)
    assert [spec.skip for spec in job.plan(dataset)] == [None, None]
    for spec in job.plan(dataset):
        task = Task(number=1, stage="ask", key=spec.key, model="m", replicate=1)
        assert len(job.request(dataset, task).messages[-1].images) == 2
    chunked = load(settings.model_copy(update={"chunk": 60}))
    *_, last = (spec for spec in job.plan(chunked) if spec.group == "text")
    task = Task(number=1, stage="chunk", key=last.key, model="m", replicate=1)
    # only the pages of the chunk
    assert len(job.request(chunked, task).messages[-1].images) == 1


def test_the_sample_has_the_pdf_files_of_its_generator() -> None:
    for name, content in PAPERS.items():
        assert (SAMPLE / "papers" / name).read_bytes() == pdf(*content)


def test_a_run_records_the_shortest_context_of_its_models(folder: Path) -> None:
    settings = AskSettings(papers=(folder / "papers",), question=("Why?",))
    limits = {
        "m": ModelLimits(context_tokens=8000),
        "n": ModelLimits(context_tokens=4000),
        "o": ModelLimits(),
    }
    fitted = job.fit(settings, limits)
    assert fitted.context_tokens == 4000
    assert recipe_of(fitted).fields["answer"].ask == "Why?"
    chosen = settings.model_copy(update={"context_tokens": 9000})
    assert job.fit(chosen, limits).context_tokens == 9000


def test_examples_and_reasoning_are_in_the_prompt(folder: Path) -> None:
    (folder / "r.toml").write_text(
        """items = "papers"
        explain = true
        instructions = "Count adults."
        [fields.n]
        ask = "How many?"
        type = "number"
        unit = "mg"
        quote = true
        [[examples]]
        text = "They took 3 mg."
        answers = { n = 3 }
        quotes = { n = "3 mg" }
        """
    )
    dataset = load(AskSettings(recipe=folder / "r.toml"))
    task = Task(number=1, stage="ask", key="a", model="m", replicate=1)
    request = job.request(dataset, task)
    system = request.messages[0].text
    assert "Count adults." in system
    example = {"quote": "3 mg", "value": 3, "unit": "mg"}
    assert json.dumps({"reasoning": "...", "n": example}) in system
    assert list(json.loads(request.schema.json)["properties"]) == ["reasoning", "n"]


TABLE = "id,title,abstract,design\n1,A,We enrolled 12 men.,RCT\n"
ASK = '[fields.n]\nask = "How many?"\n'


@pytest.mark.parametrize(
    ("recipe", "words", "sentence"),
    [
        ("", ("--question", "Why?"), "No papers are named: give --papers"),
        ("", ("--papers", "papers"), "Nothing is asked: give --question TEXT, or"),
        (ASK, (), "r.toml names no papers: write items ="),
        (
            f'items = "t.csv"\n{ASK}[fields.design]\nask = "?"\n',
            (),
            "t.csv: the field 'design' has the name of a column (rename",
        ),
        (
            f'items = "t.csv"\ntext = "{{abstract}} {{design}}"\n{ASK}gold="design"',
            (),
            "t.csv: the text shows the column 'design', which has the right values",
        ),
        (
            f'items = "t.csv"\ntext = "{{abstrct}}"\n{ASK}',
            (),
            "no column 'abstrct' (the nearest is abstract)",
        ),
        (f'items = "t.csv"\nid = "pmdi"\n{ASK}', (), "t.csv: column 'pmdi' is missing"),
        (
            f'items = "empty"\n{ASK}',
            (),
            "empty: there is no paper in this folder (put files in it",
        ),
        (
            f'items = "papers"\n{ASK}',
            ("--context-tokens", 310),
            "a.txt: the text of 'a' makes a prompt longer than the model's context of",
        ),
        (
            f'items = "papers"\n{ASK}',
            ("--id", "doi"),
            "a.txt: it has no doi to serve as id",
        ),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(
    folder: Path, recipe: str, words: tuple[object, ...], sentence: str
) -> None:
    (folder / "t.csv").write_text(TABLE)
    (folder / "empty").mkdir()
    (folder / "papers" / "a.txt").write_text("We enrolled 12 men. " * 200)
    if recipe:
        (folder / "r.toml").write_text(recipe)
        words = ("--recipe", "r.toml", *words)
    done = run(folder, *words, check=False)
    assert done.code in {1, 2}
    assert sentence in done.err
    assert not (folder / "runs").exists()


def test_new_writes_a_recipe_that_runs_and_never_overwrites(folder: Path) -> None:
    (folder / "t.csv").write_text(TABLE)
    assert siftlog("new", "r.toml", "--from", "t.csv", cwd=folder).returncode == 0
    written = (folder / "r.toml").read_text()
    assert 'text = "{title}\\n\\n{abstract}"' in written
    assert '# gold = "design"' in written
    run(folder, "--recipe", "r.toml", "--run-id", "n")
    done = siftlog("new", "r.toml", cwd=folder, check=False)
    assert (done.returncode, (folder / "r.toml").read_text()) == (2, written)
    siftlog("new", "s.toml", cwd=folder)
    run(folder, "--recipe", "s.toml", "--limit", "1", "--dry-run")


def test_a_run_in_the_folder_of_its_papers_can_be_resumed(folder: Path) -> None:
    papers = folder / "papers"
    question = ("--papers", ".", "--question", "How many?", "--run-id", "r")
    run(papers, *question, "--no-score")
    assert siftlog("resume", "r", cwd=papers).returncode == 0
    (papers / "a.txt").write_text("Other words.")
    done = siftlog("resume", "r", cwd=papers, check=False)
    assert "(papers) is not what the run was started with" in done.stderr
