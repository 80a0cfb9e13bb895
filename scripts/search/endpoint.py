"""A language model by script: an OpenAI-compatible server on this machine that answers from recorded candidates.

It behaves as models do on average: a first answer is seldom right, a repair more often, and an answer after an accepted
candidate is sometimes a step better, sometimes the same in other words, sometimes broken. All chances are drawn from
the request's own bytes, so the same request has the same answer, whoever asks and however often.
"""

from __future__ import annotations

import hashlib
import json
import random
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

RECORDED = Path(__file__).parent / "recorded"
BAD = sorted(RECORDED.glob("bad_*.py.txt"))
GOOD = sorted(RECORDED.glob("good_*.py.txt"))
# Chances that an answer is right: the first, after a verdict that is not accepted, after an accepted one.
FIRST, REPAIR, BETTER, SAME = 0.2, 0.4, 0.4, 0.3


def answer(request: dict) -> str:
    """What the model says to a request."""
    draw = random.Random(hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest())
    last = request["messages"][-1]["content"]
    if last.startswith("The file was checked and is accepted."):
        return after_accepted(request["messages"][-2]["content"], draw)
    chance = REPAIR if last.startswith("The file was checked") else FIRST
    if draw.random() < chance:
        return fenced(draw.choice(GOOD[:2]).read_text(), draw)
    return broken(draw)


def after_accepted(own: str, draw: random.Random) -> str:
    """The next better candidate, the same one in other words, or a broken one."""
    level = max((index for index, path in enumerate(GOOD) if first_line(path) in own), default=0)
    chance = draw.random()
    if chance < BETTER:
        return fenced(GOOD[min(level + 1, len(GOOD) - 1)].read_text(), draw)
    if chance < BETTER + SAME:
        return fenced(GOOD[level].read_text(), draw)
    return broken(draw)


def broken(draw: random.Random) -> str:
    """An answer that is wrong in one of many ways."""
    if draw.random() < 0.2:
        return "I would begin by looking at the memory access pattern."
    return fenced(draw.choice(BAD).read_text(), draw)


def fenced(source: str, draw: random.Random) -> str:
    """A candidate as models give it, each time in other words."""
    source = source.replace("column", draw.choice(["column", "offsets", "cols_here"]))
    return f"Here is the kernel.\n\n```python\n{source}\n# {draw.random()}\n```\n"


def first_line(path: Path) -> str:
    return path.read_text().splitlines()[0]


class Handler(BaseHTTPRequestHandler):
    """Chat completions, in one piece or as a stream."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        text = answer(request)
        usage = {"prompt_tokens": len(str(request["messages"])) // 4, "completion_tokens": len(text) // 4}
        pieces = [text[at : at + 40] for at in range(0, len(text), 40)]
        events = [{"choices": [{"delta": {"content": piece}}]} for piece in pieces]
        events.append({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": usage})
        body = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def serve() -> ThreadingHTTPServer:
    """A server on a free port of this machine; the caller runs it."""
    return ThreadingHTTPServer(("127.0.0.1", 0), Handler)
