"""Stands between Playwright and an ordinary Firefox, which speak WebDriver BiDi.

Playwright starts it as if it were Firefox. What Firefox does not know of a newer protocol and a
page can be tested without is answered for it; and tests have a connection of their own to the same
session, at /tests, for what Playwright has no words for.

    python -m tests.helpers.firefox_relay PORT_FILE FIREFOX --profile ...
"""

import asyncio
import itertools
import json
import re
import sys
from pathlib import Path
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port
from tornado.web import Application
from tornado.websocket import WebSocketClientConnection, WebSocketHandler, websocket_connect

LARGEST = 2**28  # bytes of a message: a page's screenshot
LISTENS = re.compile(r"WebDriver BiDi listening on (ws://\S+)")
# Colours are set by `tests/helpers/firefox.py`; no test reads a response's body from its event.
SPARED = {"emulation.setMediaFeaturesOverride", "network.addDataCollector"}


class Relay:
    """One session of Firefox, and who speaks in it."""

    def __init__(self) -> None:
        self.numbers = itertools.count(1)
        self.asked: dict[int, tuple[WebSocketHandler, int, str]] = {}
        self.playwright: WebSocketHandler | None = None
        self.firefox: WebSocketClientConnection | None = None

    async def ask(self, client: WebSocketHandler, text: str | bytes) -> None:
        """Passes a command on, under a number of our own."""
        command = json.loads(text)
        number = next(self.numbers)
        self.asked[number] = client, command["id"], command["method"]
        assert self.firefox
        await self.firefox.write_message(json.dumps(command | {"id": number}))

    def answer(self, text: str | bytes | None) -> None:
        """Passes an answer on to who asked, an event to Playwright."""
        if text is None:
            return self.playwright.close() if self.playwright else None
        message = json.loads(text)
        client, number, method = self.asked.pop(message.get("id"), (self.playwright, None, ""))
        if number is not None:
            message["id"] = number
        if message.get("error") == "unknown command" and method in SPARED:
            message = {"type": "success", "id": number, "result": {}}
        if client and client.ws_connection:
            client.write_message(json.dumps(message))


class Client(WebSocketHandler):
    def initialize(self, relay: Relay, port: str) -> None:
        self.relay, self.port = relay, port

    async def open(self, *args: Any) -> None:
        if self.request.path == "/session":
            self.relay.playwright = self

    async def on_message(self, message: str | bytes) -> None:
        if not self.relay.firefox:  # Playwright's first command: nobody spoke before it
            self.relay.firefox = await websocket_connect(
                f"{self.port}/session",
                on_message_callback=self.relay.answer,
                max_message_size=LARGEST,
            )
        await self.relay.ask(self, message)

    def on_close(self) -> None:
        if self.relay.playwright is self and self.relay.firefox:
            self.relay.firefox.close()


async def main(port_file: str, *command: str) -> int | None:
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    assert process.stderr
    while line := (await process.stderr.readline()).decode(errors="replace"):
        if found := LISTENS.search(line):
            socket, port = bind_unused_port()
            settings = {"relay": Relay(), "port": found[1]}
            application = Application(
                [("/session|/tests", Client, settings)], websocket_max_message_size=LARGEST
            )
            HTTPServer(application).add_socket(socket)
            Path(port_file).write_text(str(port))
            line = line.replace(found[1], f"ws://127.0.0.1:{port}")
        sys.stderr.write(line)
        sys.stderr.flush()
    return await process.wait()


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
