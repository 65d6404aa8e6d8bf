"""explain on runs of our own: what a page says of sentences, gate, K and replies."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from jobs.evidence_retrieval import prompts as asking
from jobs.evidence_retrieval.data import EvidenceDataset
from jobs.evidence_retrieval.explain import explain
from jobs.evidence_retrieval.inputs import SAMPLE, load, with_sample
from jobs.evidence_retrieval.pipeline import Config
from jobs.evidence_retrieval.predictions.fitted_gate import decode
from jobs.evidence_retrieval.predictions.scoring_input import predict
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.metrics.selective import STATES
from jobs.kit.testing import MemoryAnswers
from runner.clients.wire_shared import skeleton
from runner.job import Answer, Task
from runner.messages import AnyReply, ChatRequest, Reply
from tests.jobs.evidence_retrieval.asked import BARE, data
from tests.jobs.evidence_retrieval.world import Sayings, answers, dataset

EVERY_STAGE = (
    Config(name="llm", rerank="llm", graph="label_propagation", dynamic_k="fixed:3"),
    Config(
        name="all",
        first_stage=("embedding", "bm25"),
        rerank="endpoint",
        graph="ppr",
        dynamic_k="mass",
        gate="passthrough",
        calibration="isotonic",
        three_state=True,
    ),
)

COMMON = ["n", "gold", "bm25"]


def parts(page: str) -> dict[str, list[str]]:
    """The lines of a page by the title of their part; the head's have none."""
    found: dict[str, list[str]] = {}
    for block in page.rstrip("\n").split("\n\n"):
        title, *lines = block.split("\n")
        name, own = ("", [title, *lines]) if not found else (title, lines)
        found[name] = own
    return found


def recorded(sample: EvidenceDataset) -> MemoryAnswers:
    """The sample's recorded model."""
    lines = (SAMPLE / "replies" / "rowan-8b.jsonl").read_text("utf-8").splitlines()
    replies: dict[tuple[str, str], Mapping[str, str]] = {}
    for line in lines:
        own = json.loads(line)
        replies[own["stage"], own["key"]] = own

    def say(task: Task) -> AnyReply | None:
        own = replies.get((task.stage, task.key))
        if own is None:
            return None
        return Reply(
            text=own["response"], finish_reason=own.get("finish_reason", "stop")
        )

    return answers(sample, say, models=("rowan",))


@pytest.fixture(scope="module")
def sample() -> EvidenceDataset:
    return load(with_sample(EvidenceSettings.model_validate({})))


@pytest.fixture(scope="module")
def world() -> EvidenceDataset:
    return dataset()


@pytest.fixture(scope="module")
def run(world: EvidenceDataset) -> MemoryAnswers:
    return answers(world)


@pytest.mark.parametrize("place", [0, 4, 31, 77, 119])
def test_gate_and_k_are_those_of_the_predictions(
    world: EvidenceDataset, run: MemoryAnswers, place: int
) -> None:
    sheet = predict(world, run)
    shown = parts(explain(world, run, (sheet.queries.key(place),)))
    table = shown["gate"][1 : 1 + len(sheet.predictions)]
    rows = {line[2:20].strip(): line.split() for line in table}
    pool = world.posts[sheet.queries.post[place]].sentences
    numbers = {sentence.uid: str(n) for n, sentence in enumerate(pool, start=1)}
    listed = "\n".join(shown["shown"])
    for own in sheet.predictions:
        row = rows[own.config]
        state = None if own.state is None else STATES[own.state[place]]
        assert own.score is not None
        assert f"{own.score[place]:.5f}" in row
        for column in (own.prob_raw, own.prob, own.tau_neg, own.tau_pos):
            assert column is None or f"{column[place]:.5f}" in row
        assert row[-1] == (state or "-")
        assert own.k is not None
        uids = own.lists[own.final][place][: own.k[place]]
        k = re.search(rf"^  {re.escape(own.config)} +K (\d+): ", listed, re.MULTILINE)
        assert k is not None
        assert int(k[1]) == len(uids)
        if uids:
            assert f"\n{' ' * 22}{' '.join(numbers[uid] for uid in uids)}\n" in (
                f"{listed}\n"
            )


@pytest.mark.parametrize(
    "grids", [{}, {"gamma_grid": (0.6, 0.8)}, {"gamma_grid": (0.5,)}]
)
def test_every_reason_for_a_k_leads_to_that_k(grids: dict[str, Any]) -> None:
    asked = dataset(**grids)
    items = tuple(f"{post.id}/A.{n}" for post in asked.posts[:8] for n in (1, 2, 3))
    page = explain(asked, answers(asked), items)
    reasons = re.findall(
        r"K (\d+): ([\d.]+) of the mass is in the first (\d+); at least (\d+), "
        r"at most (\d+) of",
        re.sub(r"\s+", " ", page),
    )
    for k, _, mass, low, high in reasons:
        assert int(k) == min(max(int(mass), int(low)), int(high))
    shares = {float(own[1]) for own in reasons}
    assert shares <= set(grids.get("gamma_grid", (0.9, 0.95)))
    assert len(reasons) > len(items)
    chose = " chose gamma 0." in page
    assert chose == (len(grids.get("gamma_grid", ())) > 1)


def test_constants_that_a_fold_chose_are_told_and_places_are_by_them() -> None:
    asked = dataset(damping_grid=(0.05, 0.9), gamma_grid=(0.6, 0.8))
    made = answers(asked)
    sheet = predict(asked, made)
    (own,) = (each for each in sheet.predictions if each.config == "full")
    for place in (9, 10, 40):
        told = parts(explain(asked, made, (sheet.queries.key(place),)))
        text = re.sub(r"\s+", " ", " ".join(told["gate"]))
        fold = sheet.queries.folds[sheet.queries.fold[place]]
        (gate,) = (g for g in sheet.gates if (g.config, g.fold) == ("full", fold))
        chosen = gate.fitted["constants"]
        assert f"full: fold {fold} chose damping {chosen['damping']:g}" in text
        uids = own.lists["graph"][place]
        rows = told["sentences"][1:-2:2]
        shown = {row.split()[0]: row.removesuffix("yes").split()[-1] for row in rows}
        for rank, uid in enumerate(uids, start=1):
            assert shown[str(int(uid.rpartition("_")[2]) + 1)] == str(rank)


def test_sentences_stand_in_document_order_with_gold_score_and_place(
    sample: EvidenceDataset,
) -> None:
    page = explain(sample, recorded(sample), ("post_01/A.1",))
    lines = parts(page)["sentences"]
    assert lines[0].split() == (
        ["n", "gold", "bm25", "assess", "1st", "2nd", "graph", "3rd", "shown"]
    )
    rows = lines[1:-2]
    assert [row.split()[0] for row in rows[::2]] == ["1", "2", "3", "4", "5", "6"]
    assert rows[4].split()[:6] == ["3", "gold", "2.455", "95", "1", "1"]
    assert rows[5].startswith("      post_01_2 | I lie awake until three")
    assert lines[-2] == "  assess: probability 0.8800, from 1 reply"
    assert lines[-1] == "  places under full: 1st bm25, 2nd assess, 3rd ppr"
    assert page.startswith(
        "post_01/A.1  rowan\nsummary    truth: evidence; rowan: UNCERTAIN, p 0.75\n"
        "criterion  A.1  Broken sleep\n      | "
    )
    assert "\ngold       evidence in 1 sentence: 3\n" in page


def test_pages_of_every_stage_fit_and_name_all_of_them() -> None:
    asked = dataset(
        tasks=("assess", "embed", "rerank_api", "rerank"), configs=EVERY_STAGE
    )
    page = explain(asked, answers(asked, replicates=2), ("p003/A.1",))
    told = parts(page)
    titles = told["sentences"][0]
    assert titles.split()[:7] == [*COMMON, "assess", "llm", "cosine", "endpoint"]
    assert titles.split()[7:] == ["1st", "2nd", "graph", "3rd", "shown"]
    assert all(len(line) <= 80 for line in page.splitlines() if " | {" not in line)
    stages = [line.split()[0] for line in told["replies"] if ", task " in line]
    assert stages == [
        stage for stage in ("assess", "embed", "rerank_api", "rerank") for _ in "12"
    ]
    assert "    read    11 vectors of 8 numbers" in told["replies"]
    assert "    read    8 scores for 8 sentences" in told["replies"]
    assert "from 2 replies" in told["sentences"][-2]


def test_a_model_of_two_roles_serves_the_pages_of_all_subjects() -> None:
    asked = dataset(tasks=("assess", "embed"))
    made = answers(asked, models=("m", "the-embed"))
    first, second = explain(asked, made, ("p003/A.1",)).split("\np003/A.1  ")
    assert "  embed       the-embed, " in first
    assert "  embed       the-embed, " in second
    assert "  assess      the-embed, " not in first


def test_where_nothing_was_asked_the_lexical_page_is_whole() -> None:
    asked = data({"p": ["I lie awake at night.", "Fine."]}, configs=BARE, tasks=())
    told = parts(explain(asked, answers(asked), ("p/A.1",)))
    assert told["sentences"][0].split() == ["n", "gold", "bm25", "1st", "shown"]
    assert told["replies"] == ["  nothing was asked"]
    assert "gold       unjudged" in told[""]
    assert told["gate"][1].split()[-5:] == ["-"] * 5


def test_a_post_without_sentences_has_a_page() -> None:
    asked = data({"p": [], "q": ["Bed."]}, configs=BARE)
    told = parts(explain(asked, answers(asked, lambda _: None), ("p/A.1", "p")))
    assert told["sentences"] == ["  none"]
    assert "    skip    no_sentences" in told["replies"]


def test_before_any_run_the_very_prompt_is_shown(sample: EvidenceDataset) -> None:
    page = explain(sample, None, ("post_13/A.2",))
    told = parts(page)
    assert told[""][0] == "post_13/A.2  before any run"
    assert told["sentences"][0].split() == ["n", "gold", "bm25"]
    task = Task(number=0, stage="assess", key="post_13/A.2", model="", replicate=1)
    request = asking.request(sample, task)
    assert isinstance(request, ChatRequest)
    system, user = (
        "".join(f"      | {line}\n" for line in message.text.splitlines())
        for message in request.messages
    )
    assert f"    system\n{system}    user\n{user}" in page
    assert re.search(
        r"^  assess +about [\d,]+ tokens, at most 1,024 tokens", page, re.MULTILINE
    )


def test_before_any_run_every_planned_task_is_told() -> None:
    asked = data(
        {"p": ["I lie awake."], "q": ["One.", "Two."]},
        tasks=("assess", "embed", "rerank_api", "rerank"),
        first_stage="embedding",
        batch="post",
    )
    one = explain(asked, None, ("p/A.1",))
    assert "  assess      about " in one
    assert "A.2" in one  # all criteria of a post are asked at once
    assert ", 3 texts: criteria, then sentences\n" in one
    assert "  rerank_api  not sent: single_sentence\n" in one
    assert one.endswith("  rerank      follows what embedding answers\n")
    assert "the criterion's text and 2 documents" in explain(asked, None, ("q/A.1",))


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("post_02/A.2", "    failed  truncated"),
        ("post_03/A.2", "    failed  no_json"),
        ("post_05/A.2", "    noted   scale_guessed 1"),
        ("post_10/A.2", "    noted   relevance_clipped 1, unknown_sentence 2"),
    ],
)
def test_a_reply_says_how_it_was_read(
    sample: EvidenceDataset, key: str, line: str
) -> None:
    told = parts(explain(sample, recorded(sample), (key,)))
    assert line in told["replies"]
    unread = "failed" in line
    assert unread == any("nothing of assess" in note for note in told["sentences"])


def test_errors_and_open_tasks_are_told(world: EvidenceDataset) -> None:
    def say(task: Task) -> AnyReply | None:
        return None if task.key == "p003/A.1" else Sayings(world=world)(task)

    failed = parts(explain(world, answers(world, say), ("p003/A.1",)))
    assert failed["replies"][-1] == "    error   ServerError"
    assert failed["gate"][-3].split()[-1] == "unscored"
    (family,) = (f for f in answers(world).held if f[0].task.key == "p003/A.1")
    waiting = Answer(task=family[0].task, is_open=True)
    unfinished = MemoryAnswers(held=((waiting,),), models=("m",))
    told = parts(explain(world, unfinished, ("p003/A.1",)))
    assert told["replies"][-1] == "    open    not answered yet"


def test_a_reply_about_a_post_serves_each_query_that_it_speaks_of() -> None:
    asked = data({"p": ["I lie awake.", "Fine."]}, batch="post")
    said = {"id": "A.1", "evidence_probability": 90, "sentences": [{"n": 1}]}
    alone = {"evidence_probability": 5, "sentences": []}

    def say(task: Task) -> Reply:
        own = {"criteria": [said]} if task.key == "p" else alone
        return Reply(text=json.dumps(own))

    first, second = (
        parts(explain(asked, answers(asked, say), (key,)))["replies"]
        for key in ("p/A.1", "p/A.2")
    )
    assert "    read    probability 0.9, relevant sentences 1 (100)" in first
    assert (
        "    read    nothing about this criterion, which is sent separately"
    ) in second
    assert second[-1] == "    read    probability 0.05, relevant sentences none"


def test_windows_of_a_rerank_name_sentences_of_the_post() -> None:
    asked = data(
        {"p": [f"Night {n}." for n in range(25)]},
        configs=(Config(name="llm", rerank="llm"),),
        first_stage="document",
        order="document",
    )

    def say(task: Task) -> Reply:
        if task.stage != "rerank":
            return Reply(text='{"evidence_probability": 5, "sentences": []}')
        return Reply(text=json.dumps({"ranking": list(range(20, 0, -1))}))

    told = parts(explain(asked, answers(asked, say), ("p/A.1",)))["replies"]
    text = re.sub(r"\s+", " ", " ".join(told))
    backwards = " ".join(str(n) for n in range(25, 5, -1))
    assert f"window 1 of 2, best first: {backwards} rerank" in text
    assert "window 2 of 2, best first: 11 12 13" in text


def test_the_hash_is_that_of_the_request_as_the_log_has_it(
    world: EvidenceDataset, run: MemoryAnswers
) -> None:
    (family,) = (f for f in run.held if f[0].task.key == "p003/A.1")
    digest = skeleton(asking.request(world, family[0].task), "m").sha256
    assert f"    prompt  {digest[:16]}\n" in explain(world, run, ("p003/A.1",))


def test_an_answer_whose_item_the_data_lost_is_told_as_such() -> None:
    asked = data(
        {"p": ["One.", "Two.", "Three."]},
        configs=(Config(name="llm", first_stage=("assess",), rerank="llm"),),
        first_stage="assess",
    )

    def say(_: Task) -> Reply:
        whole = {"evidence_probability": 9, "sentences": [], "ranking": [3, 1, 2]}
        return Reply(text=json.dumps(whole))

    made = answers(asked, say)
    (post,) = asked.posts
    shorter = replace(asked, posts=(replace(post, sentences=post.sentences[:2]),))
    told = parts(explain(shorter, made, ("p/A.1",)))["replies"]
    assert "    prompt  unknown: the data no longer hold the item" in told
    assert "    failed  unknown_query" in told


def test_a_post_is_told_in_a_line_a_query(sample: EvidenceDataset) -> None:
    made = recorded(sample)
    page = explain(sample, made, ("post_01",))
    lines = page.rstrip("\n").split("\n")
    assert lines[0] == "post_01  rowan, full"
    assert lines[1].startswith("summary    truth: ")
    header = next(n for n, line in enumerate(lines) if "criterion" in line.split())
    assert lines[header].split()[:4] == ["criterion", "p", "state", "K"]
    assert [line.split()[0] for line in lines[header + 1 :]] == [
        "A.1",
        "A.2",
        "A.3",
        "A.10",
    ]
    assert lines[header + 1].endswith("  1  evidence in 1 sentence: 3")
    both = explain(sample, made, ("post_01", "post_01/A.1"))
    assert both.startswith(page.rstrip("\n") + "\n\npost_01/A.1  rowan\n")
    before = explain(sample, None, ("post_01",))
    assert before.startswith(
        "post_01  before any run\nsummary    truth: evidence for 3 of 4 criteria\n"
        "pool       6 sentences, fold 0\n"
    )


def test_a_gate_that_was_given_is_named(
    world: EvidenceDataset, run: MemoryAnswers
) -> None:
    settings = world.settings.model_copy(update={"final_gate": True})
    stored = decode(predict(replace(world, settings=settings), run).final_gates)
    page = explain(replace(world, gates=stored), run, ("p003/A.1",))
    assert "\n  the gates are those of --apply-gate\n" in page
    assert "was fitted on" not in page
    fitted = explain(world, run, ("p003/A.1",))
    assert "the gate of fold 2 was fitted on 22 posts" in fitted
