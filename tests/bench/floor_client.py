"""siftlog's HTTP client without the engine: the rest of a run's CPU is the engine's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from runner.clients import Call, ClientOptions, ModelClient, open_client
from runner.job import Task
from runner.messages import ChatRequest, Message, TextPart
from tests.bench.floor_prompts import Work, prompt, timed, work


async def worker(client: ModelClient, numbers: Iterator[int]) -> None:
    for number in numbers:
        message = Message(role="user", parts=(TextPart(text=prompt(number)),))
        task = Task(number=number, stage="s", key="k", model="openai/x", replicate=1)
        await client.call(
            Call(task=task, request=ChatRequest(messages=(message,), max_tokens=100))
        )


async def main(todo: Work) -> None:
    numbers = iter(range(todo.calls))
    base_url = todo.url.removesuffix("/chat/completions")
    client = open_client("openai/x", ClientOptions(base_url=base_url))
    watch = timed(todo)
    async with asyncio.TaskGroup() as group:
        for _ in range(todo.concurrency):
            group.create_task(worker(client, numbers))
    watch.stop()
    await client.close()


if __name__ == "__main__":
    asyncio.run(main(work()))
