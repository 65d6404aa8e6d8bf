"""A chat endpoint whose every answer a test decides, and that remembers the prompts."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Endpoint:
    """What it was asked so far, and where it listens."""

    def __init__(self, url: str, asked: list[str]) -> None:
        self.url = url
        self.asked = asked  #: the user's message of each request, in order of arrival


@contextmanager
def answering(
    answer: Callable[[str], str | int],
    served: Callable[[], Mapping[str, object]] = dict,
) -> Iterator[Endpoint]:
    """Serve *answer*, which gets a prompt and gives a reply, or an error status.

    It may wait for as long as it likes: each request has a thread of its own. *served*
    gives further fields of a body, such as the model that answered.
    """
    asked: list[str] = []

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            prompt = _text(body["messages"][-1]["content"])
            asked.append(prompt)
            reply = answer(prompt)
            status = reply if isinstance(reply, int) else 200
            data = json.dumps({**_body(reply), **served()}).encode()
            try:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except ConnectionError:
                """Whoever asked is gone, as a killed run is."""

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Endpoint(f"http://127.0.0.1:{server.server_address[1]}", asked)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _text(content: str | list[dict[str, str]]) -> str:
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content)


def _body(reply: str | int) -> dict[str, object]:
    if isinstance(reply, int):
        return {"error": {"message": "not this one"}}
    message = {"role": "assistant", "content": reply}
    return {
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1},
    }
