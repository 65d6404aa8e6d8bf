"""What people write with litellm: `acompletion` under a semaphore, JSONL.

Its telemetry, callbacks, retries and caches are off, and its price list is the one
that it ships. Importing it, and the first call, which builds its client, do not count.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import tempfile
from typing import Any, TextIO

from tests.bench.floor_prompts import Work, body, timed, work

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"


async def ask(litellm: Any, base_url: str, number: int) -> str:
    asked = body(number)
    response = await litellm.acompletion(
        **asked | {"model": "openai/bench"},
        api_base=base_url,
        api_key="none",
        timeout=60,
        num_retries=0,
        max_retries=0,
    )
    return str(response.choices[0].message.content)


async def one(
    litellm: Any, todo: Work, number: int, slots: asyncio.Semaphore, out: TextIO
) -> None:
    async with slots:
        text = await ask(litellm, base_url(todo), number)
        out.write(json.dumps({"id": number, "response": text}) + "\n")
        out.flush()


def base_url(todo: Work) -> str:
    return todo.url.removesuffix("/chat/completions")


async def main(todo: Work) -> None:
    import litellm  # noqa: PLC0415 - reads the environment set above

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)
    await ask(litellm, base_url(todo), -1)
    slots = asyncio.Semaphore(todo.concurrency)
    with tempfile.TemporaryFile("w") as out:
        watch = timed(todo)
        async with asyncio.TaskGroup() as group:
            for number in range(todo.calls):
                group.create_task(one(litellm, todo, number, slots, out))
        watch.stop()


if __name__ == "__main__":
    asyncio.run(main(work()))
