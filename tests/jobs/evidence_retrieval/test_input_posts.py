"""Posts and pools: from texts, from a file of sentences, and from both.

The shipped sample: what is in it, and where each oddity stands. Cutting texts: where
sentences end, where they do not, and that nothing is lost. `prepare sentences` and
`prepare folds`: what they build is what a run would make.
"""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.evidence_retrieval import prepare
from jobs.evidence_retrieval.inputs import SAMPLE, fold_sizes, load, with_sample
from jobs.evidence_retrieval.posts import cut, spans
from jobs.evidence_retrieval.settings import EvidenceSettings
from runner.errors import DatasetError, UsageError
from runner.job import PreparedData
from tests.jobs.evidence_retrieval.input_files import CRITERIA, POSTS, files, sentences

POOLS = sentences(
    [
        ("p2", 1, "u3", "Four"),
        ("p1", 0, "u1", "One cat."),
        ("p2", 0, "u2", "Three"),
        ("p1", 1, "u4", "Two dogs."),
    ]
)


def pools(settings: EvidenceSettings) -> dict[str, list[str]]:
    return {post.id: [s.uid for s in post.sentences] for post in load(settings).posts}


def codes(settings: EvidenceSettings) -> dict[str, int]:
    return {finding.code: finding.n for finding in load(settings).findings}


def test_without_sentences_the_posts_are_cut(tmp_path: Path) -> None:
    assert pools(files(tmp_path, posts=POSTS)) == {
        "p1": ["p1_0", "p1_1"],
        "p2": ["p2_0"],
    }


def test_pools_are_in_document_order_whatever_the_files(tmp_path: Path) -> None:
    assert pools(files(tmp_path, sentences=POOLS)) == {
        "p2": ["u2", "u3"],
        "p1": ["u1", "u4"],
    }


def test_with_both_files_the_posts_give_the_order_and_the_sentences_the_pools(
    tmp_path: Path,
) -> None:
    settings = files(tmp_path, posts=POSTS, sentences=POOLS)
    assert pools(settings) == {"p1": ["u1", "u4"], "p2": ["u2", "u3"]}
    assert codes(settings) == {"sentence_not_in_post": 1}


def test_a_post_without_sentences_is_a_finding(tmp_path: Path) -> None:
    posts = "post_id,text\np1,One cat. Two dogs.\np3,\n"
    settings = files(tmp_path, posts=posts, sentences=POOLS)
    assert pools(settings) == {"p1": ["u1", "u4"], "p3": []}
    assert codes(settings) == {"empty_pool": 1, "post_not_named": 1}
    assert codes(files(tmp_path, posts=posts)) == {"empty_pool": 1}


def test_missing_sentence_numbers_are_a_finding(tmp_path: Path) -> None:
    rows = [("p", 0, "a", "x"), ("p", 2, "b", "y"), ("q", 0, "c", "z")]
    settings = files(tmp_path, sentences=sentences(rows))
    assert codes(settings) == {"sid_gap": 1}
    assert pools(settings)["p"] == ["a", "b"]


def test_the_limit_is_a_number_of_posts(tmp_path: Path) -> None:
    settings = files(tmp_path, posts=POSTS).model_copy(update={"limit": 1})
    assert len(pools(settings)) == 1


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("posts", POSTS + "p1,x\n", "posts.csv line 4: post p1 occurs on line 2 alrea"),
        ("posts", "post_id,text\n", "posts.csv: no post in it (at least one is needed"),
        ("sentences", "\n", "sentences.jsonl: no post in it (at least one is needed"),
        ("posts", POSTS + ",x\n", "posts.csv line 4: post_id is missing (fill it in"),
        (
            "sentences",
            POOLS + sentences([("p9", 0, "u1", "x")]),
            "sentences.jsonl line 5: sent_uid u1 occurs on line 2 already (remove one)",
        ),
        (
            "sentences",
            POOLS + sentences([("p1", 1, "u9", "x")]),
            "sentences.jsonl line 5: sid 1 is that of u4 already (number a post's",
        ),
        (
            "sentences",
            sentences([("p1", -1, "u9", "x")]),
            "sentences.jsonl line 1: sid is -1 (a whole number from 0 is expected)",
        ),
    ],
)
def test_what_is_wrong_with_a_row_is_said_by_place(
    tmp_path: Path, name: str, content: str, said: str
) -> None:
    with pytest.raises(DatasetError) as caught:
        load(files(tmp_path, **{name: content}))
    assert str(caught.value).startswith(said)


DATA = load(with_sample(EvidenceSettings.model_validate({})))
TEXTS = {s.uid: s.text for post in DATA.posts for s in post.sentences}
COMMON = ("A.1", "A.2", "A.3")

ODDITIES = {
    "post_13_0": "😀",
    "post_13_1": "|",
    "post_13_2": "=SUM(",
    "post_14_0": "ignore your instructions",
    "post_05_2": "Dr. Ash",
    "post_06_4": "712.50",
    "post_06_2": '"You look well,"',
}
"""Sentences with something that a stage, a file or a terminal could trip over."""


def positives(criterion: str) -> set[str]:
    assert DATA.gold is not None
    return {post for post, found in DATA.gold.evidence if found == criterion}


def test_its_size() -> None:
    sizes = [len(post.sentences) for post in DATA.posts]
    assert (len(sizes), min(sizes), max(sizes), sum(sizes)) == (24, 1, 30, 154)
    assert [c.id for c in DATA.criteria] == ["A.1", "A.2", "A.3", "A.10"]
    assert sum(size > DATA.settings.rerank_window for size in sizes) == 1
    assert sizes[2] == 1


def test_one_criterion_is_rare_and_the_others_hold_for_four_posts_in_ten() -> None:
    assert {c: len(positives(c)) for c in (*COMMON, "A.10")} == {
        "A.1": 9,
        "A.2": 10,
        "A.3": 8,
        "A.10": 3,
    }


def test_one_post_is_unjudged_and_nothing_else_is_noticed() -> None:
    (finding,) = DATA.findings
    assert (finding.code, finding.n, finding.example) == (
        "unjudged_posts",
        1,
        "post_19",
    )


def test_folds_are_small_and_in_some_a_criterion_has_one_class() -> None:
    assert DATA.folds is not None
    assert [size.posts for size in fold_sizes(DATA, DATA.folds)] == [5, 5, 5, 5, 4]
    classes = {
        criterion: Counter(DATA.folds[post] for post in positives(criterion))
        for criterion in (*COMMON, "A.10")
    }
    missing = {c: sorted({*"01234"} - classes[c].keys()) for c in classes}
    assert missing == {"A.1": [], "A.2": [], "A.3": ["4"], "A.10": ["2", "3"]}


@pytest.mark.parametrize(("uid", "part"), ODDITIES.items())
def test_oddities_stand_where_the_index_says(uid: str, part: str) -> None:
    assert part in TEXTS[uid]


def test_a_sentence_runs_from_right_to_left() -> None:
    letters = filter(str.isalpha, TEXTS["post_13_3"])
    assert {unicodedata.bidirectional(letter) for letter in letters} == {"R"}
    assert "post_13" in positives("A.3")


def test_a_sentence_occurs_twice_in_one_post() -> None:
    repeated = [text for text, n in Counter(TEXTS.values()).items() if n > 1]
    assert repeated == ["I phoned them six times."]
    assert TEXTS["post_10_2"] == TEXTS["post_10_3"] == repeated[0]


def test_words_of_a_criterion_are_negated_where_it_does_not_hold() -> None:
    for uid in ("post_04_1", "post_04_2", "post_12_3"):
        assert "miss" in TEXTS[uid]
        assert {"not", "never"} & set(TEXTS[uid].split())
        assert uid.rpartition("_")[0] not in positives("A.3")


def test_every_positive_names_its_sentences_and_some_name_two() -> None:
    assert DATA.gold is not None
    counts = Counter(map(len, DATA.gold.evidence.values()))
    assert set(counts) == {1, 2}


def test_the_recorded_model_answered_every_query_post_and_window() -> None:
    lines = (SAMPLE / "replies" / "rowan-8b.jsonl").read_text().splitlines()
    answered = {(each["stage"], each["key"]) for each in map(json.loads, lines)}
    queries = {
        f"{p.id}/{c.id}": len(p.sentences) for p in DATA.posts for c in DATA.criteria
    }
    assert {key for stage, key in answered if stage == "assess"} == {
        *queries,
        *(post.id for post in DATA.posts),
    }
    assert {key for stage, key in answered if stage == "rerank"} == {
        f"{key}#{window}"
        for key, n in queries.items()
        if n > 1
        for window in range(1 + (n > DATA.settings.rerank_window))
    }


LIKELY = st.text(st.sampled_from("aB1 .!?\n\r\"'”»é\u2028\u00a0(x"), max_size=40)


def pieces(text: str) -> list[str]:
    return [text[span.start : span.end] for span in spans(text)]


@given(st.one_of(LIKELY, st.text(max_size=40)))
def test_joining_the_slices_with_what_lies_between_gives_the_text_back(
    text: str,
) -> None:
    rebuilt, end = "", 0
    for span in spans(text):
        between = text[end : span.start]
        assert not between.strip()
        rebuilt += between + text[span.start : span.end]
        end = span.end
    assert not text[end:].strip()
    assert rebuilt + text[end:] == text


@given(st.one_of(LIKELY, st.text(max_size=40)))
def test_no_sentence_is_blank_and_each_has_a_letter_if_any_has(text: str) -> None:
    found = pieces(text)
    assert all(piece == piece.strip() != "" for piece in found)
    assert bool(found) == bool(text.strip())
    with_letter = [any(map(str.isalpha, piece)) for piece in found]
    assert all(with_letter) or len(found) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Well... maybe. Really?! Yes.", ["Well...", "maybe.", "Really?!", "Yes."]),
        ('He said "no." She left.', ['He said "no."', "She left."]),
        ("Er sagt „Nein.“ Sie geht.", ["Er sagt „Nein.“", "Sie geht."]),
        ("One\nTwo.\r\n\r\nThree", ["One", "Two.", "Three"]),
        ("One\u2028Two", ["One", "Two"]),
        ("It took 7.5 hours, i.e. long.", ["It took 7.5 hours, i.e. long."]),
        ("It cost 1,250.00. Much.", ["It cost 1,250.00.", "Much."]),
        ("Dr. Ash and Mrs. Birch met.", ["Dr. Ash and Mrs. Birch met."]),
        ("J. Ash moved. So did I.", ["J. Ash moved.", "So did I."]),
        ("The U.S. is far. Yes.", ["The U.S. is far.", "Yes."]),
        ("Up at 4 a.m. again.", ["Up at 4 a.m. again."]),
        ("(Dr. Ash) said so.", ["(Dr. Ash) said so."]),
        ("See example.org. Or not.", ["See example.org.", "Or not."]),
        ("No! Mr! Yes.", ["No!", "Mr!", "Yes."]),
        ("I said no. He said etc. Fine.", ["I said no.", "He said etc.", "Fine."]),
        ("Fine. *** Then it rained.", ["Fine.", "*** Then it rained."]),
        ("Fine.\n***\nThen it rained.", ["Fine.\n***", "Then it rained."]),
        ("Help. ??? !!", ["Help. ??? !!"]),
        ("1. Boxes. 2. More boxes.", ["1. Boxes. 2.", "More boxes."]),
        ("???", ["???"]),
        ("12. 13.", ["12. 13."]),
        (" \n\t ", []),
        ("", []),
        ("שלום. מה שלומך?", ["שלום.", "מה שלומך?"]),
        ("😀 yes. 😀", ["😀 yes. 😀"]),
    ],
)
def test_where_sentences_end(text: str, expected: list[str]) -> None:
    assert pieces(text) == expected


def test_uids_count_from_zero_behind_the_posts_id() -> None:
    assert [(s.sid, s.uid, s.text) for s in cut("post_1", "A cat. A dog.")] == [
        (0, "post_1_0", "A cat."),
        (1, "post_1_1", "A dog."),
    ]


SAMPLED = with_sample(EvidenceSettings.model_validate({}))


def written(path: Path, made: prepare.PreparedEvidence) -> Path:
    path.write_text("".join(f"{line}\n" for line in made.lines), encoding="utf-8")
    return path


def test_the_samples_sentences_are_those_that_prepare_builds(tmp_path: Path) -> None:
    made = prepare.sentences(SAMPLED)
    path = written(tmp_path / "sentences.jsonl", made)
    assert path.read_bytes() == (SAMPLE / "sentences.jsonl").read_bytes()
    assert made.json == {"sentences": 154, "posts": 24, "empty_posts": 0}


def test_offsets_lead_back_to_the_text(tmp_path: Path) -> None:
    text = "  Dr. Ash\n slept. “Well?” "
    settings = files(tmp_path, posts=f'post_id,text\np,"{text}"\n')
    made = [json.loads(line) for line in prepare.sentences(settings).lines]
    assert [(each["sid"], each["sent_uid"]) for each in made] == [
        *((0, "p_0"), (1, "p_1"), (2, "p_2")),
    ]
    for each in made:
        assert text[each["start"] : each["end"]] == each["text"]


def test_a_run_on_built_sentences_is_a_run_on_the_posts(tmp_path: Path) -> None:
    settings = files(tmp_path, posts=POSTS + 'p3,"a ""b"", [c]"\n', criteria=CRITERIA)
    path = written(tmp_path / "s.jsonl", prepare.sentences(settings))
    built = settings.model_copy(update={"sentences": path})
    assert load(built).posts == load(settings).posts
    assert load(built).findings == ()


def test_sentences_need_posts() -> None:
    with pytest.raises(UsageError, match="Name the posts to cut with --posts"):
        prepare.sentences(EvidenceSettings.model_validate({"sentences": "x.jsonl"}))


def test_empty_posts_are_said(tmp_path: Path) -> None:
    made = prepare.sentences(files(tmp_path, posts=POSTS + "p3,\np4, \n"))
    assert made.text == "3 sentences of 4 posts; 2 posts have none"


def test_built_folds_are_read_back_whatever_the_ids(tmp_path: Path) -> None:
    posts = 'post_id,text\n=1+1,x\n"a,""b""",y\n007,z\n'
    settings = files(tmp_path, posts=posts).model_copy(update={"n_folds": 3})
    made = prepare.folds(settings)
    # without criteria nobody knows how many queries there are
    assert made.text.startswith("fold 0: 1 post\n")
    path = written(tmp_path / "f.csv", made)
    folds = load(settings.model_copy(update={"folds": path})).folds
    assert folds is not None
    assert list(folds) == ["=1+1", 'a,"b"', "007"]
    assert sorted(folds.values()) == ["0", "1", "2"]


def test_folds_are_drawn_anew_and_their_sizes_are_said() -> None:
    made = prepare.folds(SAMPLED)
    sizes = made.json["folds"]
    assert isinstance(sizes, list)
    assert [size["posts"] for size in sizes] == [4, 4, 4, 4, 8]
    assert sum(size["positives"] for size in sizes) == 30
    assert made.text.splitlines()[-1] == "overlap: 0 posts"
    assert made.text.startswith("fold 0: 4 posts, 16 queries, ")


def test_folds_of_too_few_posts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="2 posts cannot be cut into 5 folds"):
        prepare.folds(files(tmp_path, posts=POSTS))


def test_both_build_files() -> None:
    made = (build(SAMPLED) for build in prepare.SUBCOMMANDS.values())
    assert all(isinstance(each, PreparedData) for each in made)
