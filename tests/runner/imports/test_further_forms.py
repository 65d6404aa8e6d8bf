"""Files of lm-evaluation-harness, promptfoo, Langfuse, Every Eval Ever, and plain."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runner.errors import DatasetError, UsageError
from runner.imports.forms import FORMS, read_files, recognised
from runner.imports.records import ForeignReply
from runner.messages import Usage
from tests.runner.imports.foreign_files import lines

DATE = "2026-01-31T09-30-00.123456"


def read(path: Path, model: str | None = None) -> list[ForeignReply]:
    return [reply for _, reply in read_files([path], model=model)]


def harness(doc_id: int, resps: list[Any], **more: Any) -> dict[str, Any]:
    """A line of a sample file."""
    calls = {"gen_args_0": {"arg_0": "Q: How many?\nA:", "arg_1": {"until": ["\n"]}}}
    line = {"doc_id": doc_id, "doc": {"q": "How many?"}, "target": "4", "resps": resps}
    line |= {"arguments": calls, "filter": "none", "metrics": ["exact_match"]}
    return {**line, "exact_match": 1.0, **more}


def test_filters_of_a_document_are_scores_of_one_reply(tmp_path: Path) -> None:
    path = lines(
        tmp_path / f"samples_sums_{DATE}.jsonl",
        harness(0, [["It is 4."]], filter="strict", exact_match=0.0),
        harness(1, [["four", "4"]], filter="strict"),
        harness(0, [["It is 4."]], filter="loose"),
        harness(1, [["four", "4"]], filter="loose"),
    )
    results = {"results": {}, "date": 1769851800.5, "model_name": "org/m"}
    (tmp_path / f"results_{DATE}.json").write_text(json.dumps(results), "utf-8")
    assert recognised(path) == "lm-eval"
    replies = read(path)
    assert [(r.item, r.epoch, r.text) for r in replies] == [
        ("sums/0", 1, "It is 4."),
        ("sums/1", 1, "four"),
        ("sums/1", 2, "4"),
    ]
    assert replies[0].scores == {"exact_match,strict": 0.0, "exact_match,loose": 1.0}
    assert {(r.model, r.created_s, r.target) for r in replies} == {
        ("org/m", 1769851800, "4")
    }
    assert replies[0].messages[0].text == "Q: How many?\nA:"
    assert replies[0].fields == {"doc_id": "0", "task": "sums", "doc.q": "How many?"}


def test_a_sample_without_replies_is_named(tmp_path: Path) -> None:
    whole = harness(0, [["a"]])
    path = lines(tmp_path / "s.jsonl", whole, {"doc_id": 1, "doc": {}})
    with pytest.raises(
        DatasetError, match=r"^s\.jsonl line 2: .* missing required field 'resps' \("
    ):
        read(path, model="m")


@pytest.mark.parametrize("is_text", [False, True])
def test_the_likeliest_choice_is_the_reply(tmp_path: Path, *, is_text: bool) -> None:
    values = [-1.5, -0.2, -9.0]
    resps = [[[str(v), "False"] if is_text else [v, False]] for v in values]
    calls = {
        f"gen_args_{n}": {"arg_0": "Q:", "arg_1": f" {choice}"}
        for n, choice in enumerate(("red", "blue", "green"))
    }
    choice = harness(0, resps, arguments=calls, target="2", metrics=["acc"], acc=0.0)
    (reply,) = read(lines(tmp_path / "s.jsonl", choice), model="m")
    assert (reply.item, reply.text, reply.target) == ("0", "blue", "green")
    assert (reply.scores, reply.dropped) == ({"acc": 0.0}, ("log-likelihoods",))
    with pytest.raises(UsageError, match=r"add --model NAME, or copy its results_"):
        read(tmp_path / "s.jsonl")


def test_results_of_promptfoo_are_the_same_in_both_files(tmp_path: Path) -> None:
    chat = json.dumps([{"role": "user", "content": "Say 4"}])
    right = {
        "promptIdx": 0,
        "promptId": "a1",
        "testIdx": 3,
        "provider": {"id": "openai:gpt-x", "label": ""},
        "prompt": {"raw": chat, "label": "p"},
        "vars": {"n": "4"},
        "response": {"output": "4", "tokenUsage": {"prompt": 9, "completion": 1}},
        "failureReason": 0,
        "success": True,
        "score": 1,
        "namedScores": {"has": 0.5},
        "latencyMs": 12,
        "cost": 0.001,
        "testCase": {"assert": [{"type": "equals", "value": "4"}]},
        "gradingResult": {"pass": True},
    }
    failed = {**right, "promptIdx": 1, "promptId": "b2", "failureReason": 2}
    failed |= {"error": "busy", "response": {"error": "busy"}, "success": False}
    rows = lines(tmp_path / "r.jsonl", right, failed)
    whole = tmp_path / "r.json"
    report = {"version": 3, "timestamp": "2026-01-31T09:30:00Z", "prompts": []}
    report["results"] = [right, failed]
    whole.write_text(json.dumps({"evalId": "e", "results": report}), "utf-8")
    assert (recognised(rows), recognised(whole)) == ("promptfoo-lines", "promptfoo")
    first, second = read(whole)
    assert first == ForeignReply(
        item="test-3",
        model="openai:gpt-x",
        messages=first.messages,
        text="4",
        epoch=4,
        usage=Usage(tokens_in=9, tokens_out=1),
        created_s=1769851800,
        latency_ms=12,
        cost_usd=0.001,
        target="4",
        scores={"has": 0.5, "score": 1.0, "pass": 1.0},
        fields={"vars.n": "4"},
        dropped=("explanations of scores",),
    )
    assert first.messages[0].text == "Say 4"
    assert (second.item, second.text, second.error) == ("test-3/prompt-1", None, "busy")
    assert second.scores == {}
    assert [reply.text for reply in read(rows)] == ["4", None]


EQUALS = {"type": "equals", "value": "{{n}}"}


@pytest.mark.parametrize(
    ("declared", "components", "target"),
    [
        ([EQUALS], None, "{{n}}"),
        ([EQUALS], [{"pass": True, "assertion": None}, None], "{{n}}"),
        ([EQUALS], [{"assertion": EQUALS, "metadata": None}], "{{n}}"),
        (
            [EQUALS],
            [
                {"assertion": None},
                {"assertion": EQUALS, "metadata": {"renderedAssertionValue": "4"}},
            ],
            "4",
        ),
        ([EQUALS], [{"assertion": {"type": "javascript", "value": "1"}}], None),
        (None, None, None),
        (["equals"], [], None),
    ],
)
def test_the_right_answer_is_that_of_an_assertion_if_any(
    tmp_path: Path, declared: object, components: object, target: str | None
) -> None:
    result = {
        "promptIdx": 0,
        "testIdx": 0,
        "vars": {},
        "provider": {"id": "m"},
        "response": {"output": "4"},
        "testCase": {"assert": declared},
        "gradingResult": {"pass": True, "componentResults": components},
    }
    (reply,) = read(lines(tmp_path / "r.jsonl", result))
    assert reply.target == target


def test_lines_of_promptfoo_belong_together_in_any_order(tmp_path: Path) -> None:
    def result(test: int, column: int, prompt: str, model: str) -> dict[str, Any]:
        return {
            "testIdx": test,
            "promptIdx": column,
            "promptId": prompt,
            "provider": {"id": model},
            "response": {"output": "4"},
            "vars": {"n": test // 2},  # each test twice, as by --repeat 2
        }

    columns = [(0, "p", "a"), (1, "q", "a"), (2, "p", "b"), (3, "q", "b")]
    results = [result(test, *column) for test in range(4) for column in columns]
    expected = {
        (f"test-{test}{prompt}", model, epoch)
        for test in (0, 2)
        for epoch in (test + 1, test + 2)
        for prompt in ("", "/prompt-1")
        for model in "ab"
    }
    for order in (results, results[::-1], results[5:] + results[:5]):
        path = lines(tmp_path / "r.jsonl", *order)
        assert {(r.item, r.model, r.epoch) for r in read(path)} == expected


def generation(**more: Any) -> dict[str, Any]:
    """A generation, as the API of Langfuse writes it."""
    return {
        "id": "o1",
        "traceId": "t1",
        "type": "GENERATION",
        "startTime": "2026-01-31T09:29:59Z",
        "endTime": "2026-01-31T09:30:00.000Z",
        "model": "gpt-x",
        "input": [{"role": "user", "content": "Say 4"}],
        "output": {"role": "assistant", "content": "4"},
        "usageDetails": {"input": 5, "output": 1, "input_cached_tokens": 2, "total": 8},
        "totalCost": 0.01,
        "latency": 1.5,
        "level": "DEFAULT",
        "metadata": {"pmid": 7},
        **more,
    }


def test_generations_of_langfuse_are_read_from_all_its_files(tmp_path: Path) -> None:
    span = generation(type="SPAN")
    failed = generation(level="ERROR", statusMessage="Timeout after 9 s", output=None)
    blob = generation(
        trace_id="t1",
        start_time="2026-01-31 09:29:59.000000",
        end_time="2026-01-31 09:30:00.000000",
        provided_model_name="gpt-x",
        input=json.dumps([{"role": "user", "content": "Say 4"}]),
        output=json.dumps({"role": "assistant", "content": "4"}),
        usage_details={"input": "5", "output": "1", "input_cached_tokens": "2"},
        total_cost="0.01",
        metadata=json.dumps({"pmid": 7}),
    )
    for name in ("traceId", "startTime", "endTime", "model", "usageDetails"):
        del blob[name]
    del blob["totalCost"]
    of_lines = lines(tmp_path / "blob.jsonl", blob, span)
    of_list = tmp_path / "page.json"
    of_list.write_text(json.dumps([generation(), span, failed], indent=2), "utf-8")
    of_api = tmp_path / "api.json"
    answer = {"data": [span, generation()], "meta": {"page": 1}}
    of_api.write_text(json.dumps(answer), "utf-8")
    names = [recognised(path) for path in (of_lines, of_list, of_api)]
    assert names == ["langfuse", "langfuse-list", "langfuse-api"]
    (expected,) = read(of_api)
    assert (expected.text, expected.model, expected.created_s) == (
        "4",
        "gpt-x",
        1769851800,
    )
    assert expected.usage == Usage(tokens_in=7, tokens_out=1, tokens_cached=2)
    assert (expected.latency_ms, expected.cost_usd) == (1500.0, 0.01)
    assert expected.fields["metadata.pmid"] == "7"
    assert read(of_lines) == [expected]
    first, second = read(of_list)
    assert first == expected
    assert (second.text, second.error) == (None, "Timeout")
    assert second.item == first.item


def instance(sample: str, metric: str, score: float, **more: Any) -> dict[str, Any]:
    """A record of Every Eval Ever."""
    return {
        "schema_version": "0.3.0",
        "evaluation_id": "says/m/1",
        "model_id": "org/m",
        "evaluation_name": "says",
        "evaluation_result_id": metric,
        "sample_id": sample,
        "interaction_type": "single_turn",
        "input": {"raw": "Say 4", "formatted": None, "reference": ["4"]},
        "output": {"raw": ["4"], "reasoning_trace": None},
        "messages": None,
        "answer_attribution": [],
        "evaluation": {"score": score, "is_correct": score > 0.5},
        "token_usage": {"input_tokens": 9, "output_tokens": 1, "total_tokens": 10},
        "performance": {"latency_ms": 30.0},
        "error": None,
        "metadata": {"epoch": "1"},
        **more,
    }


def test_records_of_a_reply_are_joined_and_replicates_are_not(tmp_path: Path) -> None:
    other = {"raw": ["five"]}
    path = lines(
        tmp_path / "i.jsonl",
        instance("a", "exact", 1.0),
        instance("a", "exact", 0.0, output=other),
        instance("a", "f1", 1.0),
        instance("a", "f1", 0.25, output=other),
        instance("b", "exact", 0.0, error="timeout", output=None, messages=None),
    )
    assert recognised(path) == "every-eval-ever"
    first, second, third = read(path)
    assert (first.text, first.epoch, first.scores) == ("4", 1, {"exact": 1, "f1": 1})
    assert (second.text, second.epoch) == ("five", 2)
    assert second.scores == {"exact": 0.0, "f1": 0.25}
    assert first.usage == Usage(tokens_in=9, tokens_out=1)
    assert (first.target, first.latency_ms) == ("4", 30.0)
    assert (third.text, third.error) == (None, "timeout")


def test_the_last_turn_of_a_conversation_is_the_reply(tmp_path: Path) -> None:
    turns = [
        {"turn_idx": 0, "role": "user", "content": "Say 4"},
        {"turn_idx": 1, "role": "tool", "content": "seen"},
        {"turn_idx": 2, "role": "assistant", "content": "4"},
    ]
    path = lines(
        tmp_path / "i.jsonl",
        instance("a", "exact", 1.0, output=None, messages=turns),
    )
    (reply,) = read(path)
    assert (reply.text, len(reply.messages)) == ("4", 1)
    assert reply.dropped == ("messages of role tool",)


def test_plain_lines_have_keys_of_several_names(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "p.jsonl",
        {"prompt": "Say 4", "response": "4", "model": "a", "expected": 4, "n": 1},
        {"messages": [{"role": "user", "content": "Say 4"}], "output": "5"},
        {"id": 7, "error": "RateLimitError: slow", "score": {"f1": 0.5, "ok": True}},
    )
    assert recognised(path) == "plain"
    first, second, third = read(path, model="b")
    assert first.item == second.item
    assert first.item.startswith("prompt-")
    assert (first.model, second.model) == ("a", "b")
    assert (first.target, first.fields) == ("4", {"n": "1"})
    assert (third.item, third.text, third.error) == ("7", None, "RateLimitError")
    assert third.scores == {"f1": 0.5, "ok": 1.0}


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (
            '{"prompt": "a", "reply": "b", "model": "m"',
            r"line 2: not valid JSON, expecting ',' delimiter at character \d+ \(",
        ),
        ('["a"]', r"line 2: expected 'object', got 'array' \(export"),
        ('{"prompt": "a", "model": "m"}', r"line 2: no reply \(its key is one of "),
        ('{"reply": "a", "model": "m"}', r"line 2: neither an id nor a prompt \("),
        ('{"prompt": [1], "reply": "a"}', r"line 2: expected 'object', got 'int'"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: str, sentence: str) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text(f'{{"id": 1, "reply": "b", "model": "m"}}\n{line}\n', "utf-8")
    with pytest.raises(DatasetError, match=rf"^p\.jsonl {sentence}"):
        read(path)


def test_a_file_in_no_form_is_refused_with_the_list_of_forms(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n", "utf-8")
    assert recognised(path) is None
    with pytest.raises(DatasetError, match=r"^x\.csv: fits no known format") as caught:
        read(path)
    assert f"({', '.join(FORMS)}; see docs/imports.md" in str(caught.value)
