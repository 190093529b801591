"""An OpenAI-compatible server on this machine that misbehaves as it is told."""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]


def plain_choice(body: Body, seed: int) -> Body:
    """A choice whose text is made of the seed alone."""
    return choice_of(body, f"\\boxed{{{seed}}}")


def choice_of(body: Body, text: str, finish: str = "stop", **fields: Any) -> Body:
    """A choice with this text, in the shape of the endpoint that was asked."""
    if "messages" in body:
        return {"finish_reason": finish, "message": {"role": "assistant", "content": text, **fields}}
    return {"finish_reason": finish, "text": text}


class StubServer:
    """Answers chat and completion requests; use as a context manager.

    Args:
        choice: (request body, seed of the choice) to a choice.
        faults: share of requests by kind of fault: ``429`` (every second one with Retry-After), ``500``,
            ``broken`` (JSON cut short), ``hang`` (until the client lets go), ``drop`` (closes the
            connection), ``empty`` (a reply without choices).
        count: number of choices that come when n are asked for.
        owner: `owned_by` of the listed model.
        refuse: (request body) to a refusal (status, message), or None.
        delay: seconds before a reply.

    Attributes:
        received: everything that came in: request line, headers and body of every request, as text.
        bodies: the parsed bodies of completion requests.
        list_status: status of the reply to who asks for the models.
        most_at_once: the largest number of requests that were being answered at the same time.
    """

    def __init__(
        self,
        choice: Callable[[Body, int], Body] = plain_choice,
        *,
        faults: Mapping[str, float] | None = None,
        count: Callable[[int], int] = lambda n: n,
        owner: str = "someone",
        refuse: Callable[[Body, str], tuple[int, str] | None] = lambda body, key: None,
        delay: float = 0.0,
    ) -> None:
        self.choice, self.faults, self.count = choice, dict(faults or {}), count
        self.owner, self.refuse, self.delay = owner, refuse, delay
        self.received: list[str] = []
        self.bodies: list[Body] = []
        self.paths: list[str] = []
        self.met: Counter[str] = Counter()
        self.list_status = 200
        self.most_at_once = 0
        self._at_once = 0
        self._tries: Counter[int] = Counter()
        self._lock = threading.Lock()
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                stub.note(self, b"")
                send(
                    self, stub.list_status, {"data": [{"id": "m", "object": "model", "owned_by": stub.owner}]}
                )

            def do_POST(self) -> None:
                stub.serve(self)

            def log_message(self, format: str, *args: Any) -> None:
                """Tests print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> StubServer:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def seeds(self) -> list[int]:
        """The seeds of all completion requests, in their order."""
        return [body["seed"] for body in self.bodies]

    def note(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        with self._lock:
            self.received.append(f"{handler.requestline}\n{handler.headers}\n{body.decode()}")

    def serve(self, handler: BaseHTTPRequestHandler) -> None:
        raw = handler.rfile.read(int(handler.headers["Content-Length"]))
        body = json.loads(raw)
        self.note(handler, raw)
        with self._lock:
            self.bodies.append(body)
            self.paths.append(handler.path)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            self._tries[body["seed"]] += 1
            fault = self._fault(body["seed"], self._tries[body["seed"]])
            self.met[fault] += 1
            refusal = self.refuse(body, handler.headers["Authorization"])
        time.sleep(self.delay)
        with self._lock:  # before the reply, after which the client may ask again
            self._at_once -= 1
        if refusal is not None:
            send(handler, refusal[0], {"error": {"message": refusal[1]}})
        else:
            self._reply(handler, body, fault)

    def _fault(self, seed: int, tries: int) -> str:
        draw = random.Random(f"{seed} {tries}").random()
        for name, share in self.faults.items():
            draw -= share
            if draw < 0:
                return name
        return "none"

    def _reply(self, handler: BaseHTTPRequestHandler, body: Body, fault: str) -> None:
        if fault == "429":
            retry_after = {"Retry-After": "0.01"} if self.met["429"] % 2 else {}
            send(handler, 429, {"error": {"message": "slow down"}}, retry_after)
        elif fault == "500":
            send(handler, 500, {"error": {"message": "the server is on fire"}})
        elif fault == "hang":
            handler.close_connection = True
            handler.connection.recv(1)  # returns when the client closes
        elif fault == "drop":
            handler.close_connection = True
            handler.connection.shutdown(socket.SHUT_RDWR)
        elif fault == "empty":
            send(handler, 200, {"error": {"message": "upstream"}, "choices": None})
        else:
            asked = body.get("n", 1)
            choices = [self.choice(body, body["seed"] + place) for place in range(self.count(asked))]
            usage = {
                "prompt_tokens": 100,
                "completion_tokens": 7 * len(choices),
                "prompt_tokens_details": {"cached_tokens": 90},
            }
            send(handler, 200, {"choices": choices, "usage": usage}, cut=fault == "broken")


def send(
    handler: BaseHTTPRequestHandler,
    status: int,
    reply: Body,
    headers: Mapping[str, str] | None = None,
    *,
    cut: bool = False,
) -> None:
    content = json.dumps(reply).encode()
    content = content[: len(content) // 2] if cut else content
    handler.send_response(status)
    for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)
