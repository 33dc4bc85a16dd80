"""The process in which a student's code runs: little memory, no network, only its own files.

`python -m attnbook.teach.sandbox N` waits on the socket N. For each socket that it receives there
it forks a child, which has torch and the book's models imported and knows nothing of solutions or
hidden tests.
"""

import importlib
import json
import linecache
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any

import torch

from attnbook.teach import cage, wire
from attnbook.teach.asking import watched
from attnbook.teach.student import follow
from attnbook.teach.submission import Shell, python


def main() -> None:
    """Fork a child for each socket received and answer its number; end children by number."""
    follow()
    torch.set_num_threads(1)
    importlib.import_module("attnbook.model")  # as every assignment does; saves 0.15 s each
    _ = torch.randn(3, 3).softmax(-1) @ torch.randn(3, 3)  # loads what the first use needs
    control = socket.socket(fileno=int(sys.argv[1]))
    children: set[int] = set()
    while True:
        asked, descriptor = _question(control)
        if asked is None:
            return
        with suppress(ChildProcessError):
            while ended := os.waitpid(-1, os.WNOHANG)[0]:
                children.discard(ended)
        if "end" in asked:
            if asked["end"] in children:  # not yet waited for, so the id is not reused
                for end in (os.killpg, os.kill):
                    with suppress(ProcessLookupError):
                        end(asked["end"], signal.SIGKILL)
            control.sendall(struct.pack(">I", asked["end"]))
        elif child := os.fork():
            os.close(descriptor)
            children.add(child)
            control.sendall(struct.pack(">I", child))
        else:
            control.close()
            _live(socket.socket(fileno=descriptor), asked)


def _question(control: socket.socket) -> tuple[Any, int]:
    """A line of JSON, None at the end, and the socket sent with it."""
    text, found = b"", [-1]
    while not text.endswith(b"\n"):
        part, descriptors, _, _ = socket.recv_fds(control, 1 << 16, 1)
        if not part:
            return None, -1
        text, found = text + part, descriptors or found
    return json.loads(text), found[0]


def _live(line: socket.socket, limits: dict[str, Any]) -> None:
    """The child's life: put up the walls that the system supports, then serve."""
    if namespaces := cage.alone():
        for wait in (lambda child: cage.watch(child, limits), lambda child: os.waitpid(child, 0)):
            follow()
            if child := os.fork():  # the first is process 1 inside; when it ends, all inside end
                line.close()
                os._exit(os.waitstatus_to_exitcode(wait(child)[1]) & 0xFF)
    follow()
    os.setsid()
    os.register_at_fork(after_in_child=line.close)  # a fork of this process must not answer
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    sys.modules["__main__"] = module = ModuleType("__main__")
    names = vars(module)
    names |= {"get_ipython": lambda: Shell(names), "display": lambda *_, **__: None}
    try:
        built = cage.close(limits, namespaces)
        commands: dict[str, Callable[..., Any]] = {
            "built": lambda: built,
            "run": lambda source, name: _run(source, name, names),
            "get": lambda name: names[name],
            "has": lambda name: name in names,
            "call": lambda function, args, more: function(*args, **more),
            "watch": watched,
        }
        wire.Peer(line, commands).serve()
    finally:
        os._exit(1)


def _run(source: str, name: str, names: dict[str, Any]) -> None:
    """Run a cell; its source lines are available, as `torch.jit` needs them."""
    source = python(source)
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    exec(compile(source, name, "exec"), names)


if __name__ == "__main__":
    main()
