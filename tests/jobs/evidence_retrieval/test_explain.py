"""explain by the command: a run of the sample, and the sample before any run.

explain on imports: lists with gold, numbers as they were given, the state again.
explain whatever it is given: hostile names and texts, narrow pages, wrong items.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jobs.evidence_retrieval.data import (
    Criterion,
    EvidenceDataset,
    Gold,
    PoolSentence,
    Post,
)
from jobs.evidence_retrieval.explain import explain
from jobs.evidence_retrieval.inputs import load
from jobs.evidence_retrieval.pipeline import Config
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.testing import MemoryAnswers
from runner.errors import UsageError
from runner.messages import Reply
from store.database import open_reader
from store.document import WIDTH
from store.printable import display_width, printable
from store.tables import started
from tests.commands import siftlog
from tests.jobs.evidence_retrieval.asked import data
from tests.jobs.evidence_retrieval.given_files import (
    CLEAN,
    SAMPLE,
    Rows,
    changed,
    ranked,
    read,
    write_csv,
    write_jsonl,
)
from tests.jobs.evidence_retrieval.world import answers


def test_command_explains_queries_before_and_after_a_run(tmp_path: Path) -> None:
    def told(*words: str) -> str:
        return siftlog(*words, cwd=tmp_path).stdout

    before = told("explain", "evidence-retrieval", "post_13/A.2")
    assert before.startswith("post_13/A.2  before any run\n")
    assert "\nprompts\n  assess      about " in before
    model = ("--model", "baseline/lexical", "--no-score", "--run-id", "r")
    told("run", "evidence-retrieval", *model)
    page = told("explain", "r", "post_13/A.2", "post_13")
    assert page.startswith(
        "post_13/A.2  baseline/lexical\n"
        "summary    truth: evidence; baseline/lexical: UNCERTAIN, p 0.33\n"
        "criterion  A.2"
    )
    assert "\npost_13  baseline/lexical, full\n" in page
    (task,) = (
        line.rpartition("task ")[2] for line in page.splitlines() if ", task " in line
    )
    with open_reader(tmp_path / "runs" / "r" / "log.db") as reader:
        digest = started(reader, int(task))
    assert digest is not None
    assert f"\n    prompt  {digest[:16]}\n" in page
    wrong = siftlog("explain", "r", "post_31/A.2", cwd=tmp_path, check=False)
    assert wrong.returncode != 0
    assert "the nearest are post_23/A.2, post_21/A.2" in wrong.stderr


def test_command_explains_an_import(tmp_path: Path) -> None:
    rows = write_csv(tmp_path / "l.csv", CLEAN)
    lists = write_jsonl(tmp_path / "r.jsonl", ranked(CLEAN))
    files = ("--per-query", rows, "--rankings", lists, "--rankings", f"b={lists}")
    words = ("import", "evidence-retrieval", *files, "--no-score", "--run-id", "r")
    siftlog(*words, cwd=tmp_path)
    page = siftlog("explain", "r", "p_1/A.1", cwd=tmp_path).stdout
    assert page.startswith(
        "p_1/A.1  imported\nsummary    truth: evidence; imported: POS, p 0.90, right\n"
        "criterion  A.1\n"
    )
    assert "\n\np_1/A.1  b\n" in page
    assert "\n  gold        1    yes  p_1_0\n" in page


def page(folder: Path, rows: Rows, *items: str, **own: object) -> str:
    """Of an import of *rows* with a ranking of each pool."""
    file = write_jsonl(folder / "r.jsonl", ranked(rows))
    settings = EvidenceSettings.model_validate({"rankings": [str(file)], **own})
    found = read(write_csv(folder / "l.csv", rows), settings=settings)
    return explain(load(settings), MemoryAnswers.of_import(found), items)


def test_lists_are_told_by_place_with_gold_and_what_is_shown(tmp_path: Path) -> None:
    shown = page(tmp_path, CLEAN, "p/A.1")
    assert shown.startswith(
        "p/A.1  imported\nsummary    truth: evidence; imported: UNCERTAIN, p 0.50\n"
        "criterion  A.1\npool       4 sentences"
    )
    assert "\ngold       evidence in 2 sentences: p_1 p_3\n" in shown
    assert "  gold  ranking  shown  uid\n" in shown
    rows = shown.split("uid\n")[1].split("\n\n")[0].split("\n")
    assert [row.split() for row in rows] == [
        ["1", "yes", "p_0"],
        ["gold", "2", "yes", "p_1"],
        ["3", "yes", "p_2"],
        ["gold", "4", "p_3"],
    ]


def test_numbers_stand_as_given_beside_the_state_that_follows(tmp_path: Path) -> None:
    lines = page(tmp_path, CLEAN, "p/A.1").splitlines()
    rows = lines[lines.index("numbers") + 2 :]
    told = dict(re.split(r" {2,}", line.strip()) for line in rows)
    assert told["p"] == "0.5"
    assert told["evidence_precision_at_k"] == "0.333333333333"
    assert told["K"] == "3"
    assert told["state"] == told["state by p and taus"] == "UNCERTAIN"


@pytest.mark.parametrize(
    ("cells", "state", "follows"),
    [
        ({"state": "NEG"}, "NEG", "UNCERTAIN"),
        (
            {"p4_prob_calibrated": 0.12},
            "UNCERTAIN",
            "UNCERTAIN; NEG if p = tau_neg counts as NEG",
        ),
        ({"tau_pos": "inf"}, "UNCERTAIN", "UNCERTAIN"),
        ({"tau_neg": ""}, "UNCERTAIN", "not known: p or a threshold is missing"),
    ],
)
def test_a_state_is_held_against_p_and_thresholds(
    tmp_path: Path, cells: dict[str, object], state: str, follows: str
) -> None:
    lines = page(tmp_path, changed(2, **cells), "p/A.1").splitlines()
    assert lines[-2].split() == ["state", state]
    assert lines[-1].strip().split("  ", 1)[1].strip() == follows


def test_the_run_s_own_sentences_and_criteria_fill_the_page(tmp_path: Path) -> None:
    sentences = [
        {"post_id": post, "sid": n, "sent_uid": f"{post}_{n}", "text": f"Line {n}."}
        for post in ("p", "p_1")
        for n in range(4)
    ]
    pool = write_jsonl(tmp_path / "s.jsonl", sentences)
    criteria = write_csv(
        tmp_path / "c.csv",
        [{"criterion_id": f"A.{n}", "text": f"Criterion {n}."} for n in (1, 2)],
    )
    shown = page(tmp_path, CLEAN, "p/A.1", sentences=pool, criteria=criteria)
    assert "criterion  A.1\n      | Criterion 1.\n" in shown
    assert "\ngold       evidence in 2 sentences: 2 4\n" in shown
    assert "  2  gold        2    yes\n      p_1 | Line 1.\n" in shown


def test_a_file_without_lists_says_that_no_sentences_are_named(realdata: Path) -> None:
    settings = EvidenceSettings(allow_ragged=True)
    found = read(realdata / SAMPLE, settings=settings)
    answers = MemoryAnswers.of_import(found)
    shown = explain(load(settings), answers, ("post_001/A.1", "post_001"))
    assert "\ngold       evidence, sentences unnamed\n" in shown
    assert "\nsentences\n  none are named\n" in shown
    assert "  state                    POS\n" in shown
    assert "  state by p and taus      UNCERTAIN\n" in shown
    last = shown.rstrip("\n").split("\n")[-4:]
    assert [line.split()[:4] for line in last] == [
        ["A.1", "0.8200", "POS", "10"],
        ["A.2", "0.1200", "NEG", "5"],
        ["A.3", "0.6800", "POS", "10"],
        ["A.4", "0.0600", "NEG", "5"],
    ]


WIDE = "長い" * 50
HOSTILE = f"\x1b[2J\nreplies\n  \u202egate\u2066 {WIDE}\u0301\ufe0f 👩\u200d🚀"


def hostile() -> EvidenceDataset:
    """Everything that comes from files is hostile but for the tail that tells it."""
    post = Post(
        id=f"p{HOSTILE}",
        sentences=tuple(
            PoolSentence(sid=n, uid=f"{n}{HOSTILE}", text=f"{n}{HOSTILE}")
            for n in range(3)
        ),
    )
    criterion = Criterion(id=f"c{HOSTILE}", text=f"t{HOSTILE}", name=f"n{HOSTILE}")
    return EvidenceDataset(
        settings=EvidenceSettings(),
        posts=(post,),
        criteria=(criterion,),
        gold=Gold(
            posts=frozenset({post.id}),
            evidence={(post.id, criterion.id): (post.sentences[1].uid,)},
        ),
        folds={post.id: f"f{HOSTILE}"},
        configs=(
            Config(name=f"one{HOSTILE}"),
            Config(name=f"two{HOSTILE}", rerank="assess"),
        ),
    )


def ours(page: str) -> list[str]:
    """The lines of a page that quote nothing."""
    return [line for line in page.splitlines() if not line.startswith("      | ")]


def test_hostile_names_and_texts_stay_in_their_lines() -> None:
    asked = hostile()
    (post,), (criterion,) = asked.posts, asked.criteria
    key = f"{post.id}/{criterion.id}"
    made = answers(asked, lambda _: Reply(text=HOSTILE), models=(f"m{HOSTILE}",))
    for run in (made, None):
        page = explain(asked, run, (key, post.id))
        lines = ours(page)
        assert all(line == printable(line) for line in lines)
        assert all(display_width(line) <= WIDTH for line in lines)
        assert lines.count("replies") == (run is not None)
        assert lines.count("sentences") == 1
        assert "\n      | t\u241b[2J\n      | replies\n" in page


def test_names_that_are_cut_show_so() -> None:
    asked = hostile()
    (post,), (criterion,) = asked.posts, asked.criteria
    page = explain(asked, None, (f"{post.id}/{criterion.id}",))
    assert page.startswith("p\u241b[2J\u240areplies\u240a  <202E>gate<2066> 長い長い")
    assert ours(page)[0].endswith("…")


@pytest.mark.parametrize(
    ("item", "sentence"),
    [
        ("post_l/A.1", "the nearest is post_1/A.1."),
        ("post_l", "the nearest is post_1."),
        ("post_1/A1", "the nearest are post_1/A.1, post_1/A.2."),
        ("post_1/", "the nearest are post_1/A.2, post_1/A.1."),
        ("", "name a post by its id, or a query as post/criterion."),
        ("zzz\x1b[2J/q", "There is no post and no query 'zzz\u241b[2J/q'; name a post"),
    ],
)
def test_an_unknown_item_is_named_with_what_is_near(item: str, sentence: str) -> None:
    asked = data({"post_1": ["One."], "other": ["Two."]})
    with pytest.raises(UsageError) as caught:
        explain(asked, None, ("post_1", item))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_name_that_fits_both_ways_is_a_query() -> None:
    asked = data({"a": ["One."], "a/A.1": ["Two."]})
    assert "\ncriterion  A.1\n" in explain(asked, None, ("a/A.1",))
    assert "\ncriterion  A.1\n" in explain(asked, None, ("a/A.1/A.1",))
