"""The endpoints: what they allow, what befalls them, and what they wrote down.

Every request is a line of the ledger from the moment it arrives. Work that was begun is
done, and billed, whether or not anybody is left to take the reply.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from runner import errors as e
from runner.clients.client import Call, ClientStatistics, ClientTally, Received
from runner.clients.refusals import refusal
from runner.clients.wire import decode_reply
from runner.clients.wire_openai import OPENAI_CHAT, encode_reply
from runner.engine.failure_policy import RETRY_RULES
from runner.messages import ChatRequest, Reply, Usage
from runner.money.prices import cost_pico
from runner.simulate.options import SimulatedLimits as ServerLimits
from runner.simulate.options import SimulateOptions, retry_after
from store.task import pico
from tests.simulation.broken import Broken
from tests.simulation.disk import Disk
from tests.simulation.loop import SimulatedClock
from tests.simulation.says import REFUSALS, Identity, Says
from tests.simulation.scenario import Rules, Scenario

MOST_FAULTS = 16
"""Of one task in mild weather; with re-asks still fewer than it may try."""
CLASSES: Mapping[str, type[e.AttemptError]] = {
    "429": e.RateLimited,
    "5xx": e.ServerError,
    "529": e.Overloaded,
    "hang": e.Timeout,
    "slow": e.Timeout,
    "drop before the work": e.ConnectionLost,
    "drop after the work": e.ConnectionLost,
    "outage": e.ConnectionLost,
    "malformed": e.MalformedReply,
    "wrong key": e.AuthFailed,
}
WORKED = ("answered", "slow", "drop after the work", "malformed")
"""Fates in which the model has done its work."""
STATUS = {"429": 429, "529": 529, "wrong key": 401}


@dataclass(slots=True, kw_only=True)
class Line:
    """One request in the ledger."""

    at_s: float
    process: int  #: which one sent it
    task: int
    asked: Identity
    endpoint: str
    turn: int  #: how often the task was asked before, by the dialogue
    seq: int  #: what was durable when it arrived
    in_flight: int  #: of its model and process, this one included
    fate: str = "answered"
    tokens: int = 0  #: used, if the work was done
    is_delivered: bool = False  #: a living process took the reply
    told_at_s: float = 0.0  #: when a living process was refused
    wait_s: float | None = None  #: how long it was then asked to wait, if it was


class Provider:
    """All endpoints of one simulated run."""

    def __init__(
        self,
        scenario: Scenario,
        clock: SimulatedClock,
        chance: random.Random,
        say: Callable[[str], None] | None,
    ) -> None:
        self._scenario = scenario
        self._clock = clock
        self._chance = chance
        self._say = say
        self.says = Says(seed=scenario.seed)
        self.ledger: list[Line] = []
        self.bill_pico = 0
        #: what people have allowed so far, commands included that nobody has read yet
        self.cap_pico = (
            None if scenario.budget_usd is None else pico(scenario.budget_usd)
        )
        #: by model, the most that was ever allowed at a time
        self.most_slots = {
            lane.model: lane.limits.concurrency for lane in scenario.lanes
        }
        self._prices = {lane.model: lane.price for lane in scenario.lanes}
        self.fates: Counter[str] = Counter()
        self._met: dict[int, Counter[type[e.AttemptError]]] = {}
        self._limits = {
            endpoint: ServerLimits(
                SimulateOptions(
                    rps=rules.rps, tpm=rules.tpm, limit_headers=rules.tells
                ),
                clock.monotonic(),
            )
            for endpoint, rules in scenario.rules.items()
        }
        self._working: Counter[str] = Counter()
        self._open: Counter[tuple[int, str]] = Counter()

    def allow(self, model: str, slots: int) -> None:
        """Somebody asks for so many calls at a time."""
        self.most_slots[model] = max(self.most_slots[model], slots)

    def forgive(self, tasks: list[int]) -> None:
        """These tasks were reopened: faults they met before do not count."""
        for task in tasks:
            self._met.pop(task, None)

    async def serve(
        self, call: Call, endpoint: str, process: int, seq: int
    ) -> Received:
        """One request from its arrival to what its client sees."""
        task, request = call.task, call.request
        assert isinstance(request, ChatRequest)
        asked = (task.stage, task.key, task.model, task.replicate)
        self._open[process, task.model] += 1
        line = Line(
            at_s=self._clock.monotonic(),
            process=process,
            task=task.number,
            asked=asked,
            turn=(len(request.messages) - 1) // 2,
            endpoint=endpoint,
            seq=seq,
            in_flight=self._open[process, task.model],
        )
        self.ledger.append(line)
        self._working[endpoint] += 1
        try:
            usage = self._usage(request)
            reply = replace(self.says.reply(asked, line.turn), usage=usage)
            return await self._befall(line, reply, usage)
        finally:
            self._open[process, task.model] -= 1
            self._working[endpoint] -= 1

    def _usage(self, request: ChatRequest) -> Usage:
        """Tokens of three letters and more."""
        letters = sum(len(message.text.encode()) for message in request.messages)
        tokens_in = letters // self._chance.randint(3, 5)
        return Usage(
            tokens_in=tokens_in,
            tokens_cached=self._chance.choice((0, tokens_in // 2)),
            tokens_out=self._chance.randint(1, request.max_tokens),
        )

    async def _befall(self, line: Line, reply: Reply, usage: Usage) -> Received:
        used = usage.tokens_in + usage.tokens_out
        line.fate, wait_s = self._fate(line, used)
        self.fates[line.fate] += 1
        if self._say is not None:
            self._say(f"request for {line.task} {line.asked}: {line.fate}")
        if line.fate in WORKED:
            line.tokens = used
            self._charge(line, usage)
            if self._chance.random() < self._scenario.mute:
                reply = replace(reply, usage=None)
        headers = self._limits[line.endpoint].headers(line.at_s)
        latency_s = self._chance.uniform(*self._scenario.latency_s)
        await self._fail(line, latency_s, headers, wait_s)
        body = encode_reply(reply.text, reply.finish_reason, reply.usage)
        if line.fate == "malformed":
            body = body[: len(body) // 2]
        decoded = decode_reply(OPENAI_CHAT, body)
        line.is_delivered = True
        return Received(
            body=body, form=OPENAI_CHAT, reply=decoded, headers=headers or None
        )

    async def _fail(
        self, line: Line, latency_s: float, headers: dict[str, str], wait_s: float
    ) -> None:
        """Take the time that a request takes, and raise unless a reply comes of it."""
        if line.fate in {"hang", "slow"}:
            await asyncio.sleep(self._scenario.timeout_s)
            raise e.Timeout(f"no reply in {self._scenario.timeout_s} s")
        if line.fate in {"drop before the work", "outage"}:
            await asyncio.sleep(latency_s / 10)
            raise e.ConnectionLost("closed by the other side")
        await asyncio.sleep(latency_s)
        if line.fate == "drop after the work":
            raise e.ConnectionLost("closed in the middle of the reply")
        if line.fate in REFUSALS:
            status, body = REFUSALS[line.fate]
            raise self._refusal(line, status, headers, body)
        if line.fate not in WORKED:
            status = STATUS.get(line.fate, 500)
            if status in {429, 529}:
                rules = self._scenario.rules[line.endpoint]
                headers = headers | _waits(rules, wait_s)
            raise self._refusal(line, status, headers, b'{"error": "not now"}')

    def _charge(self, line: Line, usage: Usage) -> None:
        price = self._prices[line.asked[2]]
        if price is None:
            return
        self.bill_pico += cost_pico(price, usage)
        if self.cap_pico is not None and self.bill_pico > self.cap_pico:
            raise Broken(
                "spending never passes the cap",
                f"{self.bill_pico} billed, {self.cap_pico} allowed, at "
                f"{line.at_s:.4f} s",
            )

    def _refusal(
        self, line: Line, status: int, headers: dict[str, str], body: bytes
    ) -> e.AttemptError:
        error = refusal(
            line.endpoint, status, headers, body, now_us=self._clock.now_us()
        )
        line.told_at_s = self._clock.monotonic()
        line.wait_s = error.retry_after_s
        return error

    # -- fates -----------------------------------------------------------------

    def _fate(self, line: Line, used: int) -> tuple[str, float]:
        """What becomes of a request, and how long to wait if it is too much."""
        wait_s = self._chance.choice((0.01, 0.5, 3.0, 30.0))
        for fate in self._threats(line):
            if self._may_befall(line.task, fate):
                return fate, wait_s
        refused = self.says.refusal(line.asked, line.turn)
        if refused is not None:
            return refused, 0.0
        slots = self._scenario.rules[line.endpoint].slots
        wait_s = self._limits[line.endpoint].admit(used, line.at_s)
        if slots is not None and self._working[line.endpoint] > slots:
            wait_s = max(wait_s, 0.5)
        if wait_s and self._may_befall(line.task, "429"):
            return "429", wait_s
        return "answered", 0.0

    def _threats(self, line: Line) -> list[str]:
        threats = [
            weather.kind
            for weather in self._scenario.weather
            if weather.endpoint == line.endpoint
            and weather.begin_s <= line.at_s < weather.end_s
        ]
        draw = self._chance.random()
        for kind, share in self._scenario.faults.items():
            if draw < share:
                threats.append(kind)
                break
            draw -= share
        return threats

    def _may_befall(self, task: int, fate: str) -> bool:
        """Whether a fault leaves the task its chance, where the weather is mild."""
        error = CLASSES[fate]
        met = self._met.setdefault(task, Counter())
        if self._scenario.is_mild and (
            met.total() >= MOST_FAULTS or met[error] >= _bearable(error)
        ):
            return False
        met[error] += 1
        return True


def _bearable(error: type[e.AttemptError]) -> int:
    """Failures of a class that a task survives; a wrong key never is its fault."""
    rule = RETRY_RULES[error]
    return MOST_FAULTS if rule.stops_endpoint else rule.max_attempts - 1


def _waits(rules: Rules, wait_s: float) -> dict[str, str]:
    told = retry_after(wait_s)
    if rules.waits != "ms":
        del told["retry-after-ms"]
    return told if rules.waits else {}


@dataclass(slots=True, kw_only=True)
class SimulatedClient:
    """One process's connection to the model of one lane."""

    provider: Provider
    endpoint: str
    process: int
    disk: Disk
    tally: ClientTally = field(default_factory=ClientTally)

    async def call(self, call: Call) -> Received:
        """Send one attempt."""
        with self.tally.attempt():
            return await self.provider.serve(
                call, self.endpoint, self.process, self.disk.seq
            )

    def statistics(self) -> ClientStatistics:
        """The client's figures."""
        return self.tally.statistics()

    async def close(self) -> None:
        """Nothing to release."""
