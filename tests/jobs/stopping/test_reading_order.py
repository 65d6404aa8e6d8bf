"""Records in the order of models, of texts with feedback, and of chance."""

from __future__ import annotations

from jobs.stopping.reading_order import TfidfRanking, model_order, random_order
from runner.labelling import ModelLabel

TEXTS = {"a": "stones", "b": "warm frogs", "c": "cold frogs", "d": "warm toads"}


def reply(item: str, value: str | None, p: float | None = None) -> ModelLabel:
    return ModelLabel(
        item=item, field="", model="m", replicate=1, value=value, probability=p
    )


def test_a_model_ranks_by_its_mean_probability_of_inclusion() -> None:
    replies = {
        "a": [reply("a", "exclude", 0.9)],
        "b": [reply("b", "include", 0.8), reply("b", "exclude")],
        "c": [reply("c", "include")],
        "d": [reply("d", None)],
    }
    assert model_order("abcde", replies) == ["c", "d", "e", "b", "a"]


def test_texts_rank_by_the_question_and_then_by_labels() -> None:
    ranking = TfidfRanking(TEXTS, "frogs")
    assert set(ranking.order[:2]) == {"b", "c"}
    assert ranking.refit({"b": True}) is None
    learned = ranking.refit({"b": True, "c": False})
    assert learned is not None
    assert learned.index("d") < learned.index("a")
    assert learned[-1] == "c"


def test_texts_without_a_word_keep_their_order() -> None:
    ranking = TfidfRanking({"a": "", "b": "the"}, "frogs")
    assert ranking.order == ["a", "b"]
    assert ranking.refit({"a": True, "b": False}) is None


def test_chance_is_a_function_of_the_seed() -> None:
    keys = [str(number) for number in range(50)]
    assert random_order(keys, 1) == random_order(reversed(keys), 1)
    assert random_order(keys, 1) != random_order(keys, 2)
