"""The fold of label logs against one by hand, in any order of files."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from store.events import UnknownEvent
from store.labels.events import (
    Adjudicated,
    ItemDrawn,
    LabelRecorded,
    LabelsStarted,
    LabelWithdrawn,
)
from store.labels.fold import (
    EventId,
    ItemField,
    LabelEntry,
    LabelKey,
    LabelSet,
    population_hash,
    text_hash,
)

AUTHORS = ("ann", "bo", "cy")
ITEMS = ("one", "two")
VALUES = ("include", "exclude")


@dataclass
class History:
    """Entries in the order in which they were recorded, by any of three writers."""

    entries: list[LabelEntry] = field(default_factory=list)
    seqs: dict[str, int] = field(default_factory=dict)

    def add(self, writer: str, event: object, *, same_time: bool = False) -> str:
        seq = self.seqs[writer] = self.seqs.get(writer, 0) + 1
        last = self.entries[-1].ts_us if self.entries else 0
        entry = LabelEntry(last + (not same_time), EventId(writer, seq), event)  # type: ignore[arg-type]
        self.entries.append(entry)
        return str(entry.id)


MOVES = st.lists(
    st.tuples(
        st.sampled_from(["label", "withdraw", "foreign", "adjudicate", "unadjudicate"]),
        st.sampled_from(AUTHORS),
        st.sampled_from(ITEMS),
        st.sampled_from(VALUES),
        st.integers(0, 100),
    ),
    max_size=25,
)


@given(MOVES, st.randoms(use_true_random=False), st.integers(0, 25))
def test_the_fold_is_that_of_a_list_by_hand(
    moves: list[tuple[str, str, str, str, int]], random: Random, cut: int
) -> None:
    history = History()
    history.add("ann", LabelsStarted(author="ann", siftlog_version="1"))
    # by hand: what each person's stack of labels holds, withdrawn ones taken out
    labels: dict[LabelKey, list[tuple[str, str]]] = {}
    finals: dict[str, list[tuple[str, str, str]]] = {}
    for kind, author, item, value, pick in moves:
        key = LabelKey(author, item, "")
        mine = labels.setdefault(key, [])
        final = finals.setdefault(item, [])
        match kind:
            case "label":
                event = LabelRecorded(author=author, item=item, value=value)
                mine.append((history.add(author, event), value))
            case "withdraw" if mine:
                name, _ = mine.pop(pick % len(mine))
                history.add("other", LabelWithdrawn(author=author, label=name))
            case "foreign" if mine:
                history.add("other", LabelWithdrawn(author="dee", label=mine[-1][0]))
            case "adjudicate":
                event = Adjudicated(
                    author=author, item=item, value=value, considered=[]
                )
                final.append((history.add(author, event), author, value))
            case "unadjudicate" if final:
                name, by, _ = final.pop(pick % len(final))
                history.add(by, LabelWithdrawn(author=by, label=name))
            case _:
                pass
    shuffled = [*history.entries, *history.entries[:3]]
    random.shuffle(shuffled)
    folded = LabelSet.of(shuffled)
    assert {k: label.event.value for k, label in folded.current.items()} == {
        k: stack[-1][1] for k, stack in labels.items() if stack
    }
    gold = folded.gold()
    for item in ITEMS:
        votes = {s[-1][1] for k, s in labels.items() if k.item == item and s}
        final = finals.get(item, [])
        expected = final[-1][2] if final else votes.pop() if len(votes) == 1 else None
        found = gold.get(ItemField(item, ""))
        assert (found.value if found else None) == expected
        assert (found is not None) == bool(final or votes or expected)
        is_disputed = not final and len(votes) > 1
        assert (ItemField(item, "") in folded.disputed()) == is_disputed
    # as of a moment: what was recorded later is not there
    until = LabelSet.of(shuffled, until_us=cut)
    assert (
        until.labels
        == LabelSet.of(
            [entry for entry in history.entries if entry.ts_us <= cut]
        ).labels
    )


def test_equal_times_are_ordered_by_writer_and_seq() -> None:
    first = LabelRecorded(author="ann", item="one", value="include")
    second = LabelRecorded(author="ann", item="one", value="exclude")
    entries = [
        LabelEntry(5, EventId("bb", 1), first),
        LabelEntry(5, EventId("aa", 9), second),
    ]
    for order in (entries, entries[::-1]):
        labels = LabelSet.of(order)
        assert labels.current["ann", "one", ""].id == "bb:1"  # type: ignore[index]


def test_stale_labels_are_kept_and_are_no_gold() -> None:
    history = History()
    old = text_hash("old")
    history.add(
        "a", LabelRecorded(author="ann", item="one", value="x", text_sha256=old)
    )
    history.add("b", LabelRecorded(author="bo", item="one", value="y"))
    history.add(
        "c",
        Adjudicated(author="cy", item="two", value="x", considered=[], text_sha256=old),
    )
    labels = LabelSet.of(history.entries)
    texts = {"one": text_hash("new"), "two": text_hash("new")}
    assert [label.event.author for label in labels.stale(texts)] == ["ann"]
    assert labels.gold()["one", ""].value is None  # type: ignore[index]
    gold = labels.gold(texts)
    assert {about.item: one.value for about, one in gold.items()} == {"one": "y"}
    assert len(labels.current) == 2


def test_blindness_follows_from_what_was_visible() -> None:
    def is_blind(visible: list[str] | None) -> bool | None:
        return LabelRecorded(author="a", item="i", value="v", visible=visible).is_blind

    assert is_blind(None) is None
    assert is_blind(["title", "text"])
    assert is_blind(["text", "reply:m"]) is False
    assert is_blind(["text", "labels"]) is False


def test_draws_and_unknown_events_are_found() -> None:
    draw = ItemDrawn(
        author="ann",
        item="one",
        design="random",
        probability=0.5,
        seed=1,
        position=1,
        expected=1.0,
        population=2,
        population_sha256=population_hash(["two", "one"]),
    )
    assert draw.population_sha256 == population_hash(["one", "two"])
    history = History()
    name = history.add("a", draw)
    history.add("b", draw)
    history.add("b", UnknownEvent(kind="label_praised", version=1, facts=b"{}"))
    labels = LabelSet.of(history.entries)
    assert labels.drawn[ItemField("one", "")].id == name
    assert (len(labels.draws), labels.unknown) == (2, 1)
