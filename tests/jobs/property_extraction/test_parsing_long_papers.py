"""Long papers: read in parts that fit the models, and kept as far as replies go."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

from jobs.property_extraction.parsing import ParsedExtraction, ReportedValue
from jobs.property_extraction.plan import fit
from jobs.property_extraction.rows import count_mentions, count_repeated
from jobs.property_extraction.settings import PropertySettings
from runner.job import ModelLimits
from store.database import open_reader
from store.read.status import run_started
from tests.answering import answering
from tests.commands import Done, command, summary_of
from tests.jobs.property_extraction.real_predictions import FREE

GPT_4O = ModelLimits(output_tokens=16_384, context_tokens=128_000)
GPT_4 = ModelLimits(output_tokens=4_096, context_tokens=8_192)
UNKNOWN = ModelLimits()

WHOLE_TOKENS, CAP = 10_116, 8_192
"""Of the recorded reply of 146 rows, as its endpoint counted them; and the old cap."""


def fitted(*limits: ModelLimits, **settings: Any) -> tuple[int, int]:
    found = fit(
        PropertySettings(**settings), {f"m{n}": own for n, own in enumerate(limits)}
    )
    return found.max_output_tokens, found.max_chars


def test_a_part_is_as_long_as_the_reply_of_the_smallest_model() -> None:
    assert fitted(GPT_4O) == (16_384, 3 * 16_384)
    assert fitted(UNKNOWN) == (8_192, 3 * 8_192)
    assert fitted(GPT_4O, UNKNOWN) == (8_192, 3 * 8_192)


def test_part_prompt_and_reply_fit_a_small_window() -> None:
    reply, chars = fitted(GPT_4)
    assert reply == 8_192 // 3
    assert reply + chars // 3 + 2_500 <= 8_192


def test_what_a_person_sets_stays() -> None:
    assert fitted(GPT_4O, max_chars=0) == (16_384, 0)
    assert fitted(GPT_4O, max_output_tokens=5_000) == (5_000, 15_000)
    assert fitted(GPT_4O, chunk="off") == (8_192, 0)
    assert fitted() == (8_192, 0)  # offline models have no limits


def test_a_row_that_a_later_part_repeats_is_one_row() -> None:
    def found(value: str, quote: str, name: str = "gap") -> ReportedValue:
        return ReportedValue(name=name, value=value, unit="meV", quote=quote)

    parts = [
        ParsedExtraction(rows=(found("1", "in the abstract"), found("2", "a"))),
        ParsedExtraction(
            rows=(found("1", "in a table"), found("3", "b"), found("3", "c"))
        ),
    ]
    assert [(row.value, n) for row, n in count_mentions(parts).items()] == [
        *(("1", 1), ("2", 1)),
        *(("3", 1), ("3", 1)),  # two rows of one part stay two
    ]
    assert count_repeated(parts) == 1


def paper(values: int) -> str:
    """A long text with a value in each paragraph, none of them twice."""
    filler = "We describe how the sample was made and how it was measured. " * 5
    return "\n\n".join(
        f"{filler}The energy gap of sample {n} is {n}.5 meV." for n in range(values)
    )


def reply_to(prompt: str) -> str:
    """Every value that the prompt states, in order."""
    return json.dumps(
        {
            "properties": [
                {
                    "property": f"gap of sample {n}",
                    "material": None,
                    "value": value,
                    "unit": "meV",
                    "condition": None,
                    "quote": f"The energy gap of sample {n} is {value} meV",
                }
                for n, value in re.findall(r"of sample (\d+) is ([\d.]+) meV", prompt)
            ]
        }
    )


def truth_of(folder: Path, rows: list[tuple[str, str, str]]) -> tuple[str, ...]:
    path = folder / "truth.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(("refno", "label", "property_value"))
        lines.writerows(rows)
    return "--truth", str(path)


def run(folder: Path, *words: object) -> tuple[Done, dict[str, Any]]:
    own = ("--runs-dir", folder / "runs", "--run-id", "r", "--no-report")
    done = command("run", "property-extraction", *words, *own)
    card = folder / "runs" / "r" / "scores" / "1" / "scorecard.json"
    assert card.exists(), done.err
    found: dict[str, Any] = json.loads(card.read_text("utf-8"))
    return done, found


def test_a_long_paper_is_read_in_parts_whose_rows_are_one_list(tmp_path: Path) -> None:
    (tmp_path / "papers").mkdir()
    text = paper(200)
    assert len(text) > 2 * 24_576
    (tmp_path / "papers" / "P1.txt").write_text(text, "utf-8")
    truth = [("P1", f"gap of sample {n}", f"{n}.5") for n in range(200)]
    with answering(reply_to) as endpoint:
        done, card = run(
            tmp_path,
            *("--papers", tmp_path / "papers", *truth_of(tmp_path, truth)),
            *("--model", "openai/unlisted", "--base-url", endpoint.url),
            *("--price", "0,0"),
        )
    assert done.code == 0, done.err
    assert len(endpoint.asked) == 3
    (model,) = card["models"].values()
    values = {name: model["metrics"][name]["value"] for name in ("tp", "fp", "fn")}
    assert values == {"tp": 200, "fp": 0, "fn": 0}
    with open_reader(tmp_path / "runs" / "r" / "log.db") as reader:
        settings = run_started(reader).settings
    # recorded, so that a resumed run cuts alike whatever a later price table says
    assert json.loads(settings)["max_chars"] == 24_576


def test_the_cap_of_a_known_model_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "P1.txt").write_text(paper(100), "utf-8")
    truth = truth_of(tmp_path, [("P1", "gap of sample 1", "1.5")])
    with answering(reply_to) as endpoint:
        run(
            tmp_path,
            *("--papers", tmp_path / "papers", *truth),
            *("--model", "openai/gpt-4-turbo", "--base-url", endpoint.url),
        )
    with open_reader(tmp_path / "runs" / "r" / "log.db") as reader:
        settings = json.loads(run_started(reader).settings)
    assert settings["max_output_tokens"] == 4_096
    assert len(endpoint.asked) > 1


def recorded(folder: Path, text: str) -> tuple[str, ...]:
    """A recorded answer about Paper_1 that ends at the token limit."""
    (folder / "papers").mkdir()
    (folder / "papers" / "Paper_1.txt").write_text("The text is not known.", "utf-8")
    line = {"key": "Paper_1", "response": text, "finish_reason": "length"}
    path = folder / "replies.jsonl"
    path.write_text(json.dumps(line) + "\n", "utf-8")
    return "--papers", str(folder / "papers"), "--model", f"recorded:{path}"


def test_a_reply_that_ends_within_its_first_row_fails_and_names_the_flags(
    tmp_path: Path,
) -> None:
    words = recorded(tmp_path, '{"properties": [{"property": "Tc", "val')
    done, card = run(tmp_path, *words, *truth_of(tmp_path, [("Paper_1", "Tc", "3.3")]))
    (finding,) = [own for own in card["findings"] if own["code"] == "papers_failed"]
    for flag in ("--partial", "--max-output-tokens", "--max-chars"):
        assert flag in finding["message"]
    assert "--max-output-tokens" in done.out


def test_the_real_reply_of_146_rows_is_kept_as_far_as_it_goes(
    tmp_path: Path, realdata: Path
) -> None:
    folder = realdata / "sci_llm"
    with (folder / FREE).open(encoding="utf-8", newline="") as file:
        rows = [
            {
                "property": row["property_name"],
                "material": None,
                "value": row["value_string"],
                "unit": row["units"] or None,
                "condition": None,
                "quote": row["evidence"],
            }
            for row in csv.DictReader(file)
        ]
    assert len(rows) == 146
    whole = json.dumps({"properties": rows}, ensure_ascii=False)
    words = recorded(tmp_path, whole[: len(whole) * CAP // WHOLE_TOKENS])
    rules = ("--truth", folder / "gt.csv")
    done, card = run(tmp_path, *words, *rules)
    assert done.code == 0, done.err
    own = ("--runs-dir", tmp_path / "runs")
    assert "papers 1 scored (1 truncated)" in summary_of("r", *own)
    (finding,) = [own for own in card["findings"] if own["code"] == "partial"]
    assert finding["severity"] == "warn"
    (model,) = card["models"].values()
    kept = model["metrics"]["rows"]["value"]
    assert 90 <= kept < 146
