"""An endpoint that refuses everything and echoes what it was sent, keys included."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote


@contextmanager
def serve(*statuses: int, escapes: bool = False) -> Iterator[str]:
    """Answer with *statuses* in turn; the base URL.

    With *escapes*, each letter that is echoed is written as JSON's escape of it.
    """
    turn = iter(range(10**9))

    class Refusing(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            echo = dict(self.headers.items())
            message = f"no: {echo}"
            written = json.dumps(message)
            if escapes:
                letters = "".join(f"\\u{ord(letter):04x}" for letter in message)
                written = f'"{letters}"'
            body = f'{{"error": {{"message": {written}}}}}'.encode()
            self.send_response(statuses[next(turn) % len(statuses)])
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            said = str(echo.get("Authorization"))
            self.send_header("x-request-id", said)
            self.send_header("Location", f"/v1/elsewhere?key={quote(said)}")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
