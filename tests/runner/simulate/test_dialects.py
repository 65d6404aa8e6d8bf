"""Every dialect: what a reply tells is what the bill charges, by each one's rule."""

from __future__ import annotations

import json
import ssl
from collections import Counter
from decimal import Decimal
from typing import Any

import httpx
import pytest

from runner.errors import UsageError
from runner.simulate.billing import (
    BilledTokens,
    LedgerLine,
    PriceList,
    Tokenizer,
    exact,
)
from runner.simulate.billing import bill as billed
from runner.simulate.dialects import DIALECTS
from runner.simulate.options import RequestOutcome, SimulateOptions
from runner.simulate.server import simulated
from tests.dialects import dialect
from tests.ledgers import read_batch_ledger, read_ledger

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Loading the certificates of the world takes longer than a test."""

PRICES = "1.1,8.7,0.13,1.7,2.3"
SPECIFIED = {
    *("openai", "openai-reasoning", "azure", "anthropic", "gemini-openai", "xai"),
    *("deepseek", "mistral", "groq", "openrouter", "vllm", "ollama", "llamacpp"),
    *("tgi", "litellm-proxy", "responses", "hostile"),
}


def counts(usage: dict[str, Any]) -> tuple[int, int, int, int]:
    """In, cached, written and out, as a client that knows every rule reads them.

    A third reading, written for this test: neither the simulator's nor siftlog's.
    """
    fields = {
        name: int(float(value))
        for name, value in usage.items()
        if "tokens" in name and isinstance(value, str | int | float)
    }
    sent = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
    made = usage.get("completion_tokens_details") or {}
    tokens_in = fields.get("prompt_tokens", fields.get("input_tokens", 0))
    tokens_out = fields.get("completion_tokens", fields.get("output_tokens", 0))
    if "cache_read_input_tokens" in fields:  # Anthropic's: all beside the input
        cached = fields["cache_read_input_tokens"]
        written = fields["cache_creation_input_tokens"]
        return tokens_in + cached + written, cached, written, tokens_out
    total = fields.get("total_tokens", 0)
    beside = tokens_out + made.get("reasoning_tokens", 0)
    if total == tokens_in + beside:
        tokens_out = beside
    tokens_out = max(tokens_out, total - tokens_in)
    return (
        tokens_in,
        sent.get("cached_tokens", 0),
        sent.get("cache_write_tokens", 0),
        tokens_out,
    )


def requests(name: str, path: str) -> list[dict[str, Any]]:
    mark = {"cache_control": {"type": "ephemeral"}}
    bodies = []
    for number in range(30):
        text = f"C1=CC=C(C=C1)C(=O)O 0.{number} 1.2e-{number} is what of rs{number}?"
        part = {"type": "text", "text": text} | (mark if name != "mistral" else {})
        said = [{"role": "user", "content": [part]}]
        bodies.append(
            {"model": "m", "input": text}
            if path == "/responses"
            else {"model": "m", "messages": said, "max_tokens": 4000}
            if path == "/messages"
            else {"model": "m", "messages": said}
        )
    return bodies


CASES = [
    (name, path)
    for name, row in DIALECTS.items()
    for path in ("/chat/completions", "/responses", "/messages")
    if path in row.paths
]


def test_every_dialect_of_the_list_is_spoken() -> None:
    assert set(DIALECTS) == {*SPECIFIED, "plain"}
    assert all(row.name == name for name, row in DIALECTS.items())


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("name", "path"), CASES)
@pytest.mark.asyncio
async def test_usage_read_by_the_rule_gives_the_bill_to_the_last_digit(
    name: str, path: str, seed: int
) -> None:
    options = SimulateOptions(
        dialect=name, seed=seed, bill_price=PRICES, cache_least=10
    )
    prices = PriceList.read(PRICES)
    told = Decimal(0)
    async with (
        simulated(options) as endpoint,
        httpx.AsyncClient(
            base_url=endpoint.base_url,
            headers={"authorization": "Bearer k"},
            trust_env=False,
            verify=NO_TLS,
        ) as http,
    ):
        for body in requests(name, path):
            reply = await http.post(path, json=body)
            assert reply.status_code == 200, reply.text
            line = endpoint.ledger.lines[-1]
            if not line.tells_usage:
                assert name == "hostile"
                continue
            seen = counts(reply.json()["usage"])
            assert seen == (
                line.tokens_in,
                line.tokens_cached,
                line.tokens_cache_write,
                line.tokens_out,
            )
            tokens_in, cached, written, out = seen
            tokens = BilledTokens(
                fresh=tokens_in - cached - written,
                cached=cached,
                written_5m=written,
                visible=out,
            )
            told += prices.cost(tokens)
            assert exact(prices.cost(tokens)) == line.cost_usd
        bill = endpoint.ledger.bill()
    assert bill.reported_usd == told > 0
    assert bill.billed == 30
    assert bill.cost_usd >= told
    if endpoint.dialect.reasoning.most and path == "/chat/completions":
        assert bill.tokens_reasoning > 0
    if name == "hostile" and path == "/chat/completions":
        assert bill.cost_usd > told


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.asyncio
async def test_the_same_faults_come_in_every_dialect_and_cost_what_they_should(
    name: str,
) -> None:
    path = next(
        p for p in ("/chat/completions", "/responses") if p in DIALECTS[name].paths
    )
    options = SimulateOptions(
        dialect=name,
        bill_price=PRICES,
        rate_429=0.2,
        rate_5xx=0.2,
        rate_malformed=0.2,
        rate_drop=0.2,
    )
    statuses: Counter[int] = Counter()
    async with (
        simulated(options) as endpoint,
        httpx.AsyncClient(
            base_url=endpoint.base_url,
            headers={"api-key": "k"},
            trust_env=False,
            verify=NO_TLS,
        ) as http,
    ):
        for body in requests(name, path) + requests(name, path):
            try:
                statuses[(await http.post(path, json=body)).status_code] += 1
            except httpx.TransportError:
                statuses[0] += 1
        lines, bill = endpoint.ledger.lines, endpoint.ledger.bill()
    outcomes = Counter(line.outcome for line in lines)
    assert min(outcomes[outcome] for outcome in FAULTS) > 2
    assert statuses.total() == len(lines) == 60
    errors = {
        line.status for line in lines if line.outcome is RequestOutcome.SERVER_ERROR
    }
    if name != "hostile":
        assert errors <= set(endpoint.dialect.statuses)
    for line in lines:
        is_billed = line.outcome in {
            RequestOutcome.ANSWERED,
            RequestOutcome.MALFORMED,
            RequestOutcome.DROPPED,
        }
        assert (Decimal(line.cost_usd) > 0) is is_billed, line
    whole = [line for line in lines if line.outcome is RequestOutcome.ANSWERED]
    told = [Decimal(line.cost_usd) for line in whole if line.tells_usage]
    assert bill.cost_usd == sum(Decimal(line.cost_usd) for line in lines)
    assert bill.cost_usd > bill.reported_usd == sum(told)


FAULTS = (
    RequestOutcome.RATE_LIMITED,
    RequestOutcome.SERVER_ERROR,
    RequestOutcome.MALFORMED,
    RequestOutcome.DROPPED,
    RequestOutcome.ANSWERED,
)


def post(
    base_url: str, path: str = "/chat/completions", **fields: Any
) -> httpx.Response:
    body = {"model": "m", "messages": [{"role": "user", "content": "rs42?"}], **fields}
    headers = {"authorization": "Bearer k"}
    with httpx.Client(headers=headers, trust_env=False, verify=NO_TLS) as http:
        return http.post(base_url + path, json=body)


def test_a_served_tier_decides_the_price_and_is_not_always_the_one_asked_for() -> None:
    with dialect("openai", bill_price="1,1") as endpoint:
        seen = set()
        for number in range(60):
            said = [{"role": "user", "content": f"rs{number}?"}]
            tier = ("flex", "priority")[number % 2]
            reply = post(endpoint.base_url, messages=said, service_tier=tier).json()
            line = endpoint.ledger.lines[-1]
            assert reply["service_tier"] == (line.tier or "default")
            factor = {"flex": Decimal("0.5"), "priority": Decimal(2)}
            tokens = line.tokens_in + line.tokens_out
            expected = factor.get(line.tier or "", Decimal(1)) * tokens / 10**6
            assert Decimal(line.cost_usd) == expected
            seen.add((tier, line.tier))
    assert seen == {
        *(("flex", "flex"), ("flex", None)),
        *(("priority", "priority"), ("priority", None)),
    }


def test_what_served_changes_now_and_then() -> None:
    with dialect("openrouter") as endpoint, dialect("openai") as other:
        for number in range(60):
            said = [{"role": "user", "content": f"rs{number}?"}]
            for each in (endpoint, other):
                reply = post(each.base_url, messages=said).json()
                line = each.ledger.lines[-1]
                assert reply.get("provider") == line.provider
                assert reply.get("system_fingerprint") == line.fingerprint
                assert reply["model"] == line.served_model
        providers = {line.provider for line in endpoint.ledger.lines}
        prints = Counter(line.fingerprint for line in other.ledger.lines)
    assert len(providers) > 2
    assert len(prints) > 1
    assert prints.most_common(1)[0][1] > 40


def test_a_cap_that_does_not_bound_reasoning_is_the_dialects_own() -> None:
    with dialect("xai") as wide, dialect("gemini-openai") as bound:
        for number in range(40):
            said = [{"role": "user", "content": f"rs{number}?"}]
            for each in (wide, bound):
                post(each.base_url, messages=said, max_tokens=5)
        assert max(line.tokens_out for line in wide.ledger.lines) > 100
        assert max(line.tokens_out for line in bound.ledger.lines) <= 5


def test_a_name_for_the_cap_that_a_dialect_does_not_know_is_ignored() -> None:
    with dialect("ollama", reasoning=0) as endpoint:
        post(endpoint.base_url, max_completion_tokens=1)
        post(endpoint.base_url, max_tokens=1)
        first, second = endpoint.ledger.lines
    assert (first.finish, second.finish) == ("stop", "length")


def test_a_field_that_is_ignored_has_no_effect() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    form = {
        "type": "json_schema",
        "json_schema": {"name": "s", "schema": schema, "strict": True},
    }

    def is_object(name: str, **options: Any) -> bool:
        with dialect(name, **options) as endpoint:
            reply = post(endpoint.base_url, response_format=form).json()
        return str(reply["choices"][0]["message"]["content"]).startswith("{")

    assert is_object("openai")
    assert not is_object("openai", ignored=("response_format",))
    # Anthropic's OpenAI form documents that it has no effect
    assert not is_object("anthropic")


def test_a_limit_is_told_in_the_dialects_own_headers() -> None:
    names = {
        "openai": "x-ratelimit-reset-requests",
        "anthropic": "anthropic-ratelimit-requests-reset",
        "groq": "x-ratelimit-limit-requests",
        "mistral": "ratelimit-reset",
        "openrouter": "x-ratelimit-reset",
        "litellm-proxy": "llm_provider-x-ratelimit-limit-requests",
    }
    for name, header in names.items():
        with dialect(name, rps=5.0, limit_headers=True) as endpoint:
            assert header in post(endpoint.base_url).headers, name
        with dialect(name, rps=5.0) as endpoint:
            assert header not in post(endpoint.base_url).headers, name
    with dialect("groq", rps=5.0, tpm=600.0, limit_headers=True) as endpoint:
        headers = post(endpoint.base_url).headers
    assert headers["x-ratelimit-limit-requests"] == str(5 * 86_400)
    assert headers["x-ratelimit-limit-tokens"] == "600"


def test_a_rate_is_refused_in_words_that_say_the_wait() -> None:
    with dialect("openai", rps=1.0) as endpoint:
        post(endpoint.base_url)
        reply = post(endpoint.base_url)
    assert reply.status_code == 429
    assert "Please try again in " in reply.json()["error"]["message"]
    assert reply.headers["retry-after"] == "1"


def test_an_account_is_out_of_credit_once_its_bill_passes_the_quota() -> None:
    with dialect("deepseek", bill_price="9,9", quota_usd=Decimal("0.001")) as endpoint:
        replies = [post(endpoint.base_url, seed=n).status_code for n in range(60)]
        bill = endpoint.ledger.bill()
    assert set(replies) == {200, 402}
    assert replies == sorted(replies)
    assert bill.cost_usd >= Decimal("0.001")


def test_dense_text_has_up_to_a_token_a_byte() -> None:
    table = "0.123,4.567,8.901\n" * 50
    tokens = {}
    for seed in range(20):
        with dialect("openai", seed=seed) as endpoint:
            said = [{"role": "user", "content": table}]
            reply = post(endpoint.base_url, messages=said).json()
        tokens[seed] = reply["usage"]["prompt_tokens"]
    assert all(len(table) / 2 < count <= len(table) + 7 for count in tokens.values())
    assert max(tokens.values()) > len(table) / 1.2
    assert len(set(tokens.values())) > 10


def test_a_cut_text_is_the_longest_that_fits() -> None:
    tokenizer = Tokenizer(letters=4.0, others=1.2)
    text = "The dose was 0.03 mg/kg in CYP2C9*3 carriers."
    for most in range(tokenizer.count(text)):
        cut = tokenizer.cut(text, most)
        assert tokenizer.count(cut) <= most
        assert tokenizer.count(text[: len(cut) + 1]) > most


@pytest.mark.parametrize("text", ["1", "1,2,3,4,5,6", "a,b", "-1,2", "NaN,1", ""])
def test_a_price_list_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--bill-price"):
        PriceList.read(text)


def test_prices_that_are_left_out_are_those_of_input() -> None:
    prices = PriceList.read("2,8")
    assert (prices.cached, prices.written_5m, prices.written_1h) == (2, 2, 2)
    assert PriceList.read("2,8,1,3").written_1h == 3


def test_an_unknown_dialect_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match="openai-reasoning"), dialect("klingon"):
        pass


def test_the_ledger_on_disk_and_in_memory_give_the_same_bill(tmp_path: Any) -> None:
    path = tmp_path / "ledger.jsonl"
    with dialect("hostile", bill_price=PRICES, ledger=path) as endpoint:
        for number in range(20):
            said = [{"role": "user", "content": f"rs{number}?"}]
            post(endpoint.base_url, messages=said)
        bill = endpoint.ledger.bill()
    assert billed(read_ledger(path), read_batch_ledger(path)) == bill
    assert bill.requests == 20
    first = json.loads(path.read_text().splitlines()[0])
    assert Decimal(first["cost_usd"]) >= 0
    assert set(first) == set(LedgerLine.__slots__)


@pytest.mark.parametrize(
    "name", sorted(SPECIFIED - {"anthropic", "hostile", "responses"})
)
def test_reasoning_stands_where_the_provider_puts_it(name: str) -> None:
    tokens = BilledTokens(fresh=10, cached=3, visible=4, reasoning=5)
    usage: Any = DIALECTS[name].usage(tokens, Decimal(1))
    beside = name in {"xai", "gemini-openai"}
    assert usage["prompt_tokens"] == 13
    assert usage["completion_tokens"] == (4 if beside else 9)
    assert usage["total_tokens"] == 22
    told = usage.get("completion_tokens_details", {}).get("reasoning_tokens")
    tells = {"openai", "openai-reasoning", "azure", "xai", "deepseek", "openrouter"}
    assert told == (5 if name in {*tells, "litellm-proxy"} else None)
    if name == "deepseek":
        assert usage["prompt_cache_hit_tokens"] == 3
        assert usage["prompt_cache_miss_tokens"] == 10
    if name == "openrouter":
        assert usage["cost"] == 1.0
