"""A small local server that answers like OpenAI's embedding API, and misbehaves on request."""

import base64
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

Misbehaviour = Callable[["Handler"], None]


def embedding(text: str, dimensions: int) -> np.ndarray:
    """What the server answers for a text: a function of it alone."""
    seed = int.from_bytes(text.encode()[:2000], "big") % 2**32
    return np.random.default_rng(seed).normal(size=dimensions).astype("<f4")


class Handler(BaseHTTPRequestHandler):
    server: "OpenAIServer"  # pyright: ignore

    def do_POST(self):
        content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(
            {"path": self.path, "key": self.headers["Authorization"], **content}
        )
        misbehave = self.server.plan.pop(0) if self.server.plan else None
        if misbehave:
            misbehave(self)
            return
        self.server.served += content["input"]
        rows = [
            {
                "index": i,
                "embedding": base64.b64encode(
                    embedding(text, content["dimensions"]).tobytes()
                ).decode(),
            }
            for i, text in enumerate(content["input"])
        ]
        # in another order, as the API may
        self.answer(200, {"data": rows[::-1], "model": content["model"]})

    def answer(self, status: int, content: Any, **headers: str) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):
        pass


class OpenAIServer(ThreadingHTTPServer):
    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[dict[str, Any]] = []  # every request
        self.served: list[str] = []  # every text that was embedded
        # what to do with the next requests; None, and after the last, is a good answer
        self.plan: list[Misbehaviour | None] = []
        self.url = f"http://127.0.0.1:{self.server_port}/v1"
        threading.Thread(target=self.serve_forever, args=[0.01], daemon=True).start()


def status(code: int, message: str = "something", **headers: str) -> Misbehaviour:
    return lambda handler: handler.answer(
        code, {"error": {"message": message, "code": code}}, **headers
    )


def drop(handler: Handler) -> None:
    """Close the connection without a word."""
    handler.close_connection = True


def break_off(handler: Handler) -> None:
    """Promise more bytes than come."""
    handler.answer(200, b'{"data": [', Content_Length="5000")
    handler.close_connection = True


def reply(content: Any) -> Misbehaviour:
    return lambda handler: handler.answer(200, content)
