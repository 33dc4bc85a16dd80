"""Grading: what a hostile notebook tries, and that nobody gains or loses by it but its student."""

import csv
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

from attnbook.teach import AnswerError, a1, a5, cage, grade, sitting, wire
from attnbook.teach.asking import check
from attnbook.teach.report import Mark
from attnbook.teach.student import Nursery, Student
from attnbook.teach.submission import reference
from attnbook.teach.walls import WALLS, Stood, decoys
from attnbook.teach.wire import GoneError
from tests.helpers.assignments import needed
from tests.helpers.attacks import proved, state
from tools.notebooks import BOOK, ROOT

SOLUTIONS = needed()
ASKED = ["--as-root"]  # the tests may run as root: each aims at what was made for it
KNOWN = reference(SOLUTIONS / "a1.ipynb")
MOST = sum(task.points for task in KNOWN.tasks if not task.reader)
TERMS = grade.Terms(60.0, 60.0, Stood([], {}))
TASK, CHECK, WORTH = "a1-dot-scores", "a1-check-dot-scores", 1
WRONG = "def dot_scores(queries, keys): return 3 * queries @ keys.mT\n"
RIGHT = "def dot_scores(queries, keys): return queries @ keys.mT\n"

# In place of the answer to one task. Only its points are lost. Each is bounded, and aims at what
# was made for it: were all walls gone, nothing else would be hurt.
BUSY = "import time\nuntil = time.monotonic() + 60\nwhile time.monotonic() < until: "
RAW = (  # a message of the student's own, on every line it finds
    "import os\nfor n in range(3, 100):\n"
    "    try: os.write(n, len(said).to_bytes(4, 'big') + bytes(4) + said)\n"
    "    except OSError: pass\n"
)
HOSTILE = {
    "assertion error redefined": "import builtins\nbuiltins.AssertionError = KeyError\n" + WRONG,
    "print redefined": "import builtins\nbuiltins.print = lambda *_: None\nprint('right')\n"
    + WRONG,
    "torch redefined": "import torch\ntorch.isclose = torch.allclose = lambda *_, **__: "
    "torch.tensor(True)\ntorch.Tensor.any = lambda self: False\n" + WRONG,
    "checker redefined": "import attnbook.teach.judging as j\nj.same = lambda got, *_, **__: got\n"
    "from attnbook.teach import a1\na1.dot_scores = lambda *_, **__: print('right')\n" + WRONG,
    "names of the check redefined": "a1 = same = right = lambda *_, **__: None\n" + WRONG,
    "modules poisoned": "import sys\nsys.modules['attnbook'] = sys.modules['json'] = None\n"
    + WRONG,
    "line patched": "from attnbook.teach import wire\nwire.Peer._send = lambda *_: None\n" + WRONG,
    "sys.exit": "import sys\nsys.exit(0)",
    "os._exit": "import os\nos._exit(0)",
    "os._exit in the answer": "import os\ndef dot_scores(q, k): os._exit(0)",
    "SystemExit in the answer": "def dot_scores(q, k): raise SystemExit(0)",
    "KeyboardInterrupt": "def dot_scores(q, k): raise KeyboardInterrupt",
    "error at exit": "import atexit\natexit.register(lambda: 1 / 0)\n" + WRONG,
    "endless loop": BUSY + "pass",
    "endless loop in the answer": "import time\ndef dot_scores(q, k):\n"
    "    for _ in range(600): time.sleep(0.1)",
    "a loop that fends off signals": "import signal\n"
    "for n in (1, 2, 3, 15): signal.signal(n, signal.SIG_IGN)\n" + BUSY + "time.sleep(0.1)",
    "sleep": "import time\ntime.sleep(60)",
    "recursion": "def dot_scores(q, k): return dot_scores(q, k)",
    "three gigabytes": "x = bytearray(3 << 30)\n" + RIGHT,
    "three gigabytes, little by little": "x = [bytearray(b'x' * (1 << 24)) for _ in range(192)]\n"
    + RIGHT,
    "three gigabytes in the answer": "def dot_scores(q, k):\n    x = torch.ones(3 << 28)\n"
    "    return q @ k.mT",
    "much output": "for _ in range(300): print('x' * 10**6)\n" + WRONG,
    "much on the disk": "open('big', 'wb').write(bytes(1 << 28))\n" + RIGHT,
    "a gigabyte as the answer": "def dot_scores(q, k): return torch.zeros(1, dtype=torch.int8)"
    ".expand(1 << 29)",
    "two hundred processes": "import os, time\nfor _ in range(200):\n"
    "    if os.fork() == 0:\n        time.sleep(4)\n        os._exit(0)\ntime.sleep(4)\n" + RIGHT,
    "two hundred threads": "import threading, time\nfor _ in range(200):\n"
    "    threading.Thread(target=time.sleep, args=(4,), daemon=True).start()\n" + RIGHT,
    "a child that lives on": "import os, time\nif os.fork() == 0:\n    os.setsid()\n"
    "    time.sleep(60)\n    os._exit(0)\n" + WRONG,
    "solutions read": "open(SECRET).read()\n" + RIGHT,
    "solutions read by a program": "import subprocess\n"
    "subprocess.run(['cat', SECRET], check=True)\n" + RIGHT,
    "solutions looked for": "import os\nassert 'a1.ipynb' in os.listdir(os.path.dirname(SECRET))\n"
    + RIGHT,
    "hidden tests in memory": "import gc\n"
    "wanted = 'seed=' + str(12)\n"
    "held = [x for o in gc.get_objects() for x in gc.get_referents(o) if isinstance(x, str)]\n"
    "assert len(held) > 1000 and any(wanted in x and x != wanted for x in held)\n" + RIGHT,
    "another process's memory": "import os\nopen(f'/proc/{os.getppid()}/mem', 'rb')\n" + RIGHT,
    "other students read": "open(OTHER).read()\n" + RIGHT,
    "the reference written": "open(SECRET, 'a').write(' ')\n" + RIGHT,
    "the marks written": "open(MARKS, 'w').write('x')\n" + RIGHT,
    "a folder removed": "import shutil\nshutil.rmtree(FOLDER)\n" + RIGHT,
    "a folder closed": "import os\nos.chmod(FOLDER, 0)\n" + RIGHT,
    "a process killed": "import os, signal\nos.kill(VICTIM, signal.SIGKILL)\n" + RIGHT,
    "a group of processes killed": "import os, signal\nos.killpg(VICTIM, signal.SIGKILL)\n" + RIGHT,
    "the network": "import socket\nsocket.create_connection(('127.0.0.1', PORT), 1)\n" + RIGHT,
    "the network by name": "import urllib.request\n"
    "urllib.request.urlopen('http://localhost:1', timeout=1)\n" + RIGHT,
    "an answer that equals all": "class Yes:\n"
    "    def __getattr__(self, name): return self\n"
    "    def __call__(self, *_, **__): return self\n"
    "    def __eq__(self, other): return True\n"
    "    def __bool__(self): return True\n"
    "    def __sub__(self, other): return 0\n"
    "def dot_scores(q, k): return Yes()",
    "a tensor that equals all": "class Yes(torch.Tensor):\n"
    "    @classmethod\n"
    "    def __torch_function__(cls, func, types, args=(), kwargs=None):\n"
    "        return torch.tensor(False)\n"
    "def dot_scores(q, k): return (3 * q @ k.mT).as_subclass(Yes)",
    "a tensor without numbers": "def dot_scores(q, k): return (q @ k.mT).to('meta')",
    "NaN": "def dot_scores(q, k): return q @ k.mT * float('nan')",
    "a generator": "def dot_scores(q, k):\n    while True: yield q",
    "a deep list": "def dot_scores(q, k):\n    x = []\n    for _ in range(10**5): x = [x]\n"
    "    return x",
    "nonsense on every line": "import os\ndef dot_scores(q, k):\n    for n in range(3, 100):\n"
    "        try: os.write(n, b'x' * 1000)\n        except OSError: pass\n    return q @ k.mT * 3",
    "an answer without a question": "import os, json\n"
    "said = json.dumps(['answer', ['tensor', 'float32', [-1]]]).encode()\n"
    "for n in range(3, 100):\n"
    "    try: os.write(n, len(said).to_bytes(4, 'big') + bytes(4) + said)\n"
    "    except OSError: pass\n" + WRONG,
    "all lines closed": "import os\nos.closerange(0, 100)",
    "a crash": "import ctypes\nctypes.string_at(0)",
    "an error without words": 'import os\nsaid = b\'["list", "raised", "x"]\'\n'
    "for n in range(3, 100):\n"
    "    try: os.write(n, len(said).to_bytes(4, 'big') + bytes(4) + said)\n"
    "    except OSError: pass\n" + WRONG,
    "a size without an end": "import os\n"
    'said = b\'["list", "answer", ["tensor", "int8", ["list", 1\' + b\'0\' * 30 + b\']]]\'\n'
    "for n in range(3, 100):\n"
    "    try: os.write(n, len(said).to_bytes(4, 'big') + bytes(4) + said)\n"
    "    except OSError: pass\n" + WRONG,
    "a bomb of brackets": "import os\n"
    "said = b'[\"list\", \"answer\"' + b',[\"list\"]' * (1 << 24) + b']'\n"
    "def dot_scores(q, k):\n"
    "    for n in range(3, 100):\n"
    "        try: os.write(n, len(said).to_bytes(4, 'big') + bytes(4))\n"
    "        except OSError: continue\n"
    "        open(n, 'wb').write(said)",
    "byte by byte": "import os, time\ndef dot_scores(q, k):\n"
    "    for n in range(3, 100):\n"
    "        try: os.write(n, bytes([0, 1, 0, 0, 0, 0, 0, 0]))\n"
    "        except OSError: continue\n"
    "        for _ in range(30000): time.sleep(0.002); os.write(n, b' ')",
    "questions without an end": "import gc\n"
    "line = next(x for x in gc.get_objects() if type(x).__name__ == 'Peer')\n"
    "def dot_scores(q, k):\n    for _ in range(10**6):\n        try: line.ask('nothing')\n"
    "        except Exception: pass",
    "a disk filled by many files": "for n in range(3): open(str(n), 'wb').write(bytes(50 << 20))\n"
    + RIGHT,
    "files without an end": "for n in range(10**4): open(str(n), 'w').close()\n" + RIGHT,
    "memory that is in no process": "import os\nos.memfd_create('x')\n" + RIGHT,
    "a service of the machine": "import socket\nsocket.socket(socket.AF_UNIX).connect(SERVICE)\n"
    + RIGHT,
    "a service of the machine, by letter": "import socket\n"
    "socket.socketpair(type=socket.SOCK_DGRAM)[0].sendto(b'x', LETTERS)\n" + RIGHT,
    "the grader's environment": "import ctypes\n"
    "top = ctypes.c_void_p.in_dll(ctypes.CDLL(None), '__libc_stack_end').value\n"
    "first = ctypes.c_void_p.from_address(top + 8).value\n"
    "size = next(n for n in range(1, 10**6) if b'SE' + b'CRET=' in ctypes.string_at(first, n))\n"
    + RIGHT,
    "life after its parent": "import ctypes, time\nctypes.CDLL(None).prctl(1, 0)\ntime.sleep(60)",
    "right at the first call": "seen = []\ndef dot_scores(q, k):\n    seen.append(q)\n"
    "    return q @ k.mT * (1 if len(seen) == 1 else 3)",
    "an answer kept": "kept = {}\ndef dot_scores(q, k):\n    return kept.setdefault(0, q @ k.mT)",
    "a question that asks itself": "import gc\n"
    "line = next(x for x in gc.get_objects() if type(x).__name__ == 'Peer')\n"
    "def dot_scores(q, k): return line.ask('call', dot_scores, [q, k], {})",
    "objects that are not there": 'said = b\'["list", "answer", ["yours", -1]]\'\n' + RAW + WRONG,
    "a number of 4,000 digits": "def dot_scores(q, k): return 10**4000",
    "NaN in a list": "def dot_scores(q, k): return [float('nan')]",
    "a list in itself": "x = []\nx.append(x)\ndef dot_scores(q, k): return x",
    "a tensor of few bits": "def dot_scores(q, k):\n"
    "    return torch.quantize_per_tensor(q @ k.mT, 0.1, 0, torch.qint8)",
    "a tensor with gaps": "def dot_scores(q, k): return (3 * q @ k.mT).to_sparse()",
    "a name in HTML": "def dot_scores(q, k): return type('<script>alert(1)</script>', (), {})()",
    "a grade in words": "def dot_scores(q, k):\n"
    "    raise ValueError('dot_scores: right.\\n18 of 18 points')",
    "a pickle": "class Loud:\n    def __reduce__(self): return print, ('x',)\n"
    "def dot_scores(q, k): return Loud()",
    "a number that lies": "class One(float):\n    def __eq__(self, other): return True\n"
    "def dot_scores(q, k): return One(1)",
    "a slow search": "import re\ndef dot_scores(q, k): re.match('(a+)+$', 'a' * 22 + 'b')",
    "a long expression": "eval('(' * 10**5)\n" + RIGHT,
    "five megabytes of source": "x = '" + "x" * 5_000_000 + "'\n" + RIGHT,
    "frames looked through": "import sys\nframe = sys._getframe()\n"
    "while frame: assert 'hidden' not in str(frame.f_locals); frame = frame.f_back\n" + WRONG,
    "a judge of its own": "class AnswerError(Exception): pass\n"
    "def same(got, *_, **__): return got\n"
    "def right(*_): print('right')\n" + WRONG,
    "a program in its place": "import os, sys\n"
    "os.execv(sys.executable, [sys.executable, '-c', ''])",
    "a way to other folders": "import os\nos.listdir('/tmp')\n" + RIGHT,
    "no Python": "this is no Python",
    "a line too far out": "def dot_scores(q, k):\n    x = q @ k.mT\n  return x\n!ls",
    "half a character": "raise ValueError('\\ud800')",
    "a null byte": "x = '\x00'",
    "nothing": "",
}

# Right in a notebook, each in its own way: all points.
HONEST = {
    "a line begins with %": {
        TASK: "three = (7\n    % 4)\ndef dot_scores(q, k): return q @ k.mT * (three / 3)"
    },
    "a text begins with % and !": {
        TASK: 'text = """\n%a\n!b\n"""\nassert len(text) == 7\n' + RIGHT
    },
    "help": {TASK: "torch.einsum?\n?torch.matmul\n" + RIGHT},
    "a timed cell": {TASK: "%%time\n" + RIGHT},
    "a timed line": {TASK: "%time one = 1\ndef dot_scores(q, k): return one * q @ k.mT"},
    "a list of files": {TASK: "found = !ls\n" + RIGHT},
    "display in the answer": {
        TASK: "def dot_scores(q, k):\n    display(q.shape)\n    return q @ k.mT"
    },
    "a magic in the answer": {
        TASK: "def dot_scores(q, k):\n    %matplotlib inline\n    !ls\n    return q @ k.mT"
    },
    "IPython asked": {TASK: "get_ipython().run_line_magic('matplotlib', 'inline')\n" + RIGHT},
    "a class": {
        TASK: "class Dot:\n    def __call__(self, q, k): return q @ k.mT\ndot_scores = Dot()"
    },
    "a module": {
        TASK: "class Dot(torch.nn.Module):\n    def forward(self, queries, keys):\n"
        "        return torch.einsum('bqd,bkd->bqk', queries, keys)\ndot_scores = Dot()"
    },
    "walrus, and a part": {
        TASK: "import functools\n"
        "(made := lambda power, q, k: (q @ k.mT) ** power)\n"
        "dot_scores: object = functools.partial(made, 1)"
    },
    "compiled": {
        TASK: "@torch.jit.script\n"
        "def dot_scores(q: torch.Tensor, k: torch.Tensor):\n    return q @ k.mT"
    },
    "a decorator that prints": {
        TASK: "def told(f):\n    def g(*a):\n        print(*a)\n        return f(*a)\n"
        "    return g\n@told\n" + RIGHT
    },
    "a copy of its process": {TASK: "import os\nos.fork()\n" + RIGHT},
    "gradients": {TASK: "def dot_scores(q, k): return q.requires_grad_() @ k.mT"},
    "double": {TASK: "def dot_scores(q, k): return q.double() @ k.double().mT"},
    "turned and repeated memory": {TASK: "def dot_scores(q, k): return (k @ q.mT).mT"},
    "a figure": {
        TASK: "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.savefig('x.png')\n"
        "plt.show()\n" + RIGHT
    },
    "files of its own": {
        TASK: "import tempfile\nopen('notes', 'w').write('x')\n"
        "with tempfile.TemporaryDirectory() as folder: torch.save(1, folder + '/one')\n" + RIGHT
    },
    "its own module": {
        TASK: "import pickle\nclass Note: pass\npickle.loads(pickle.dumps(Note()))\n"
        "import __main__\nassert __main__.Note is Note\n" + RIGHT
    },
    "threads and processes": {
        TASK: "import subprocess, sys\nfrom concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(4) as pool: list(pool.map(str, range(9)))\n"
        "subprocess.run([sys.executable, '-c', ''], check=True)\n" + RIGHT
    },
    "gradients computed": {
        TASK: "x = torch.ones(3, requires_grad=True)\nx.square().sum().backward()\n" + RIGHT
    },
    "a tuple with names": {
        "a1-decoder-step": "from collections import namedtuple\n"
        "Step = namedtuple('Step', 'joined state weights')\n"
        "def decoder_step(y, s, m, mask, move, W_c):\n"
        "    s = move(y, s)\n"
        "    w = torch.einsum('bd,bkd->bk', s, m).masked_fill(~mask, -torch.inf).softmax(-1)\n"
        "    c = torch.einsum('bk,bkd->bd', w, m)\n"
        "    return Step((torch.cat([c, s], -1) @ W_c.T).tanh(), s, w)"
    },
    "a number of numpy": {
        "a1-attention-error": "import numpy as np\n"
        "def attention_error(w, gold, counts):\n"
        "    return np.mean((w.argmax(-1) != gold)[counts].numpy())"
    },
}

# Cells and files that are as they should not be.
FILES = {
    "checks edited": MOST,
    "checks deleted": MOST,
    "outputs edited": MOST - WORTH,
    "the reference's cells edited": MOST,
    "an answer deleted": MOST - WORTH,
    "an answer twice, the second right": MOST,
    "an answer twice, the second wrong": MOST - WORTH,
    "a cell of help added": MOST,
    "a cell of help with nbgrader's empty words": MOST,
    "answers under each other's names": MOST - WORTH,
    "magics": MOST,
    "a folder": MOST,
    "link": "a file, not a link",
    "folder of links": "a file, not a link",
    "text": "must be a Jupyter notebook",
    "empty": "must be a Jupyter notebook",
    "a list": "must be a Jupyter notebook",
    "nested": "must be a Jupyter notebook",
    "bytes": "must be a Jupyter notebook",
    "numbers for cells": "must be a Jupyter notebook",
    "numbers for sources": "must be a Jupyter notebook",
    "strange metadata": "must be a Jupyter notebook",
    "language R": "its language must be Python",
    "format 3": "must be a notebook of format 4",
    "large": "must have at most 20 MB",
    "another assignment": "cells of assignment a1, got none",
    "no cells": "cells of assignment a1, got none",
    "folder without a notebook": "a file, not a link",
    "folder named as a notebook": "a file, not a link",
    "pipe": "a file, not a link",
    "a link to itself": "a file, not a link",
    "UTF-16": "must be a Jupyter notebook",
    "a number of 5,000 digits": "must be a Jupyter notebook",
    "metadata gone": "cells of assignment a1, got none",
    "a thousand points": MOST,
    "cells twice, first none": MOST,
    "one id for all cells": MOST,
    "<b>name": MOST,
    "=1+1": MOST,
    "@SUM(1)": MOST,
    "-rf": MOST,
    "\u202egnitirw": MOST,
}


def notebook(**changed: str) -> dict[str, Any]:
    """A student's notebook with all answers right, but those changed."""
    nb = json.loads((BOOK / "assignments" / "a1.ipynb").read_text("utf-8"))
    solved = json.loads((SOLUTIONS / "a1.ipynb").read_text("utf-8"))
    by_name = {name(cell): cell["source"] for cell in solved["cells"] if name(cell)}
    for cell in nb["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("solution"):
            cell["source"] = changed.get(name(cell), by_name[name(cell)])
    return nb


def name(cell: dict[str, Any]) -> str:
    return cell["metadata"].get("nbgrader", {}).get("grade_id", "")


def cell_of(nb: dict[str, Any], wanted: str) -> dict[str, Any]:
    (found,) = (cell for cell in nb["cells"] if name(cell) == wanted)
    return found


def files(folder: Path) -> None:
    """Write what FILES says."""

    def store(kind: str, nb: Any) -> None:
        (folder / f"{kind}.ipynb").write_text(nb if isinstance(nb, str) else json.dumps(nb))

    def changed(kind: str, change: Any, **answers: str) -> None:
        nb = notebook(**answers)
        change(nb)
        store(kind, nb)

    wrong = {TASK: WRONG}
    changed("checks edited", lambda nb: cell_of(nb, CHECK).update(source="print('right')"))
    changed("checks deleted", lambda nb: nb["cells"].remove(cell_of(nb, CHECK)))
    said = [{"output_type": "stream", "name": "stdout", "text": "dot_scores: right."}]
    changed("outputs edited", lambda nb: cell_of(nb, CHECK).update(outputs=said), **wrong)
    changed(
        "the reference's cells edited", lambda nb: cell_of(nb, "a1-start").update(source="1 / 0")
    )
    changed("an answer deleted", lambda nb: nb["cells"].remove(cell_of(nb, TASK)))

    def twice(source: str) -> Any:
        def change(nb: dict[str, Any]) -> None:
            where = nb["cells"].index(cell_of(nb, TASK))
            nb["cells"].insert(where + 1, {**cell_of(nb, TASK), "source": source})

        return change

    changed("an answer twice, the second right", twice(RIGHT), **wrong)
    changed("an answer twice, the second wrong", twice(WRONG))

    def helped(nb: dict[str, Any]) -> None:
        where = nb["cells"].index(cell_of(nb, TASK))
        extra = {
            "cell_type": "code",
            "metadata": {},
            "source": ["def turned(x):\n", " return x.mT"],
        }
        nb["cells"].insert(where - 1, extra)

    changed("a cell of help added", helped, **{TASK: "def dot_scores(q, k): return q @ turned(k)"})

    def exchanged(nb: dict[str, Any]) -> None:
        first, second = cell_of(nb, TASK), cell_of(nb, "a1-general-scores")
        first["source"], second["source"] = second["source"], first["source"]

    changed("answers under each other's names", exchanged)
    changed(
        "a cell of help with nbgrader's empty words",
        lambda nb: nb["cells"].insert(
            nb["cells"].index(cell_of(nb, TASK)),
            {
                "cell_type": "code",
                "metadata": {"nbgrader": {"grade": False, "solution": False}},
                "source": "def turned(x): return x.mT",
            },
        ),
        **{TASK: "def dot_scores(q, k): return q @ turned(k)"},
    )
    store("magics", notebook(**{TASK: "%matplotlib inline\n!ls\n" + RIGHT}))
    (folder / "a folder" / "a1").mkdir(parents=True)
    (folder / "a folder" / "a1" / "a1.ipynb").write_text(json.dumps(notebook()))
    (folder / "a folder" / "other.ipynb").write_text("")
    (folder / "link.ipynb").symlink_to(SOLUTIONS / "a1.ipynb")
    (folder / "folder of links").mkdir()
    (folder / "folder of links" / "a1.ipynb").symlink_to(SOLUTIONS / "a1.ipynb")
    store("text", "hello")
    store("empty", "")
    store("a list", [notebook()])
    store("nested", "[" * 10**5)
    (folder / "bytes.ipynb").write_bytes(bytes(range(256)))
    store("numbers for cells", {**notebook(), "cells": [1, 2]})
    store("numbers for sources", notebook(**{TASK: 3}))  # type: ignore[arg-type]
    changed("strange metadata", lambda nb: nb["cells"][3].update(metadata={"nbgrader": "x"}))
    changed("language R", lambda nb: nb["metadata"].update(kernelspec={"language": "R"}))
    store("format 3", {**notebook(), "nbformat": 3})
    with (folder / "large.ipynb").open("wb") as file:
        file.truncate(100_000_000)
    store("another assignment", {**notebook(), "cells": notebook()["cells"][:2]})
    store("no cells", {**notebook(), "cells": []})
    (folder / "folder without a notebook").mkdir()
    (folder / "folder named as a notebook.ipynb").mkdir()
    os.mkfifo(folder / "pipe.ipynb")
    (folder / "a link to itself.ipynb").symlink_to("a link to itself.ipynb")
    (folder / "UTF-16.ipynb").write_text(json.dumps(notebook()), "utf-16")
    text = json.dumps(notebook())
    store("a number of 5,000 digits", text.replace('"nbformat": 4', f'"nbformat": 4{"0" * 5000}'))

    def every(change: Any) -> Any:
        return lambda nb: [change(cell) for cell in nb["cells"]]

    changed("metadata gone", every(lambda cell: cell.update(metadata={})))
    rich = every(lambda cell: cell["metadata"].get("nbgrader", {}).update(points=1000))
    changed("a thousand points", rich)
    store("cells twice, first none", '{"cells": [], ' + text.removeprefix("{"))
    changed("one id for all cells", every(lambda cell: cell.update(id="same")))
    for odd in ("<b>name", "=1+1", "@SUM(1)", "-rf", "\u202egnitirw"):
        store(odd, notebook())


@pytest.fixture(scope="module")
def graded(tmp_path_factory) -> dict[str, dict[str, Any]]:
    """All submissions, graded in one run: the rows, and what was stored for each."""
    folder, out = tmp_path_factory.mktemp("handed-in"), tmp_path_factory.mktemp("graded")
    solutions = tmp_path_factory.mktemp("solutions")
    shutil.copy(SOLUTIONS / "a1.ipynb", solutions)
    proved(solutions, folder, out)
    files(folder)
    with decoys() as aims:
        known = {
            "SECRET": repr(str(solutions / "a1.ipynb")),
            "FOLDER": repr(str(aims.folder)),
            "SERVICE": repr(str(aims.folder / "service")),
            "LETTERS": repr(str(aims.folder / "letters")),
            "OTHER": repr(str(folder / "=1+1.ipynb")),
            "MARKS": repr(str(out / "a1.csv")),
            "VICTIM": str(aims.process.pid),
            "PORT": str(aims.port),
        }
        for kind, source in HOSTILE.items():
            for word, value in known.items():
                source = source.replace(word, value)
            (folder / f"{kind}.ipynb").write_text(json.dumps(notebook(**{TASK: source})))
        for kind, answers in HONEST.items():
            (folder / f"{kind}.ipynb").write_text(json.dumps(notebook(**answers)))
        before = state(solutions), state(folder), state(aims.folder)
        os.environ["SECRET"] = "of the lecturer"
        grade.main(
            [*ASKED, "a1", str(folder), f"--out={out}", "--seconds=6", f"--solutions={solutions}"]
        )
        del os.environ["SECRET"]
        assert (state(solutions), state(folder), state(aims.folder)) == before
        assert aims.process.poll() is None
    rows = {row["student"].lstrip("'"): row for row in csv.DictReader((out / "a1.csv").open())}
    assert len(rows) == len(HOSTILE) + len(HONEST) + len(FILES)
    for student, row in rows.items():
        row["stored"] = json.loads((out / "a1" / f"{student}.json").read_text())
        row["page"] = (out / "a1" / f"{student}.html").read_text()
    return rows


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_answer_costs_its_own_points_and_no_others(graded, kind):
    marks = {mark["task"]: mark for mark in graded[kind]["stored"]["marks"]}
    lost = {task: mark["message"] for task, mark in marks.items() if mark["points"] == 0}
    assert list(lost) == [CHECK], lost
    assert lost[CHECK]
    assert float(graded[kind]["points"]) == MOST - WORTH


@pytest.mark.parametrize("kind", HONEST)
def test_an_honest_answer_gets_all_points(graded, kind):
    marks = graded[kind]["stored"]["marks"]
    assert not {m["task"]: m["message"] for m in marks if m["points"] == 0}
    assert float(graded[kind]["points"]) == MOST


@pytest.mark.parametrize("kind", FILES)
def test_a_strange_notebook_is_graded_fairly_or_refused_with_a_reason(graded, kind):
    row, wanted = graded[kind], FILES[kind]
    if isinstance(wanted, str):
        assert wanted in row["note"] and float(row["points"]) == 0
        assert "Not graded" in row["page"]
    else:
        assert float(row["points"]) == wanted


def test_all_walls_stood(graded):
    assert graded["=1+1"]["stored"]["walls"] == list(WALLS)


@pytest.fixture(scope="module")
def walled() -> None:
    """All walls stand here, so that the grader grades; else a test is skipped, in CI it fails."""
    proved()


def sandboxes() -> set[str]:
    """The processes of students, and of nurseries."""
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True).stdout
    return {line for line in listed.splitlines() if "attnbook.teach.sandbox" in line}


OTHERS = sandboxes()  # of somebody else's run


def gone(before: set[str]) -> bool:
    """Whether all that came since then goes soon."""
    for _ in range(100):
        if not sandboxes() - before:
            return True
        time.sleep(0.1)  # it is being ended
    return False


def test_nothing_that_a_student_started_lives_on(graded):
    assert gone(OTHERS)


def test_a_page_and_a_table_show_names_as_text(graded):
    assert "<b>name" not in graded["<b>name"]["page"]
    for name in ("=1+1", "@SUM(1)", "-rf"):
        assert graded[name]["student"] == f"'{name}"
    assert "<bdi>\u202egnitirw</bdi>" in graded["\u202egnitirw"]["page"]


def test_a_page_says_what_was_wrong(graded):
    assert "3 * " not in graded["NaN"]["page"]
    assert "got NaN" in graded["NaN"]["page"]
    assert "a loop without an end?" in graded["endless loop in the answer"]["page"]
    assert "there is no dot_scores" in graded["nothing"]["page"]
    assert (
        "a loop without an end?" not in graded["two hundred processes"]["page"]
    )  # others go on meanwhile


def line_of(process: "subprocess.Popen[str]") -> str:
    """The first line after the one about the walls."""
    assert process.stdout and process.stdout.readline().startswith("walls: ")
    return process.stdout.readline()


def test_an_interrupted_run_goes_on_where_it_stopped(walled, tmp_path, capsys):
    folder, out = tmp_path / "handed-in", tmp_path / "graded"
    folder.mkdir()
    for student in ("ada", "bob", "eve"):
        (folder / f"{student}.ipynb").write_text(json.dumps(notebook()))
    command = [*ASKED, "a1", str(folder), f"--out={out}", f"--solutions={SOLUTIONS}", "--jobs=1"]
    run = [sys.executable, "-m", "attnbook.teach.grade", *command]
    process = subprocess.Popen(run, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert line_of(process).startswith("ada")
    process.kill()
    process.wait()
    first = (out / "a1" / "ada.json").stat().st_mtime_ns
    (folder / "bob.ipynb").write_text(json.dumps(notebook(**{TASK: WRONG})))
    grade.main(command)
    assert "were graded before" in capsys.readouterr().out
    assert (out / "a1" / "ada.json").stat().st_mtime_ns == first
    points = {
        row["student"]: float(row["points"]) for row in csv.DictReader((out / "a1.csv").open())
    }
    assert points == {"ada": MOST, "bob": MOST - WORTH, "eve": MOST}


def test_parts_of_two_processes_make_the_marks_of_one(walled, tmp_path):
    """As two jobs of an array do, in one folder: the run without a part writes the tables."""
    arguments = hand_in(tmp_path, "ada", "bob", "eve", "sue")
    (tmp_path / "handed-in" / "bob.ipynb").write_text(json.dumps(notebook(**{TASK: WRONG})))
    (tmp_path / "handed-in" / "sue.ipynb").write_text(json.dumps(notebook(**{TASK: ""})))
    run = [sys.executable, "-m", "attnbook.teach.grade", *arguments, "--jobs=1"]
    parts = [
        subprocess.Popen([*run, f"--part={part}"], stdout=subprocess.PIPE, text=True, cwd=ROOT)
        for part in ("1/2", "2/2")
    ]
    said = [part.communicate()[0] for part in parts]
    assert [part.returncode for part in parts] == [0, 0]
    assert all(f"2 students of this part: {tmp_path / 'a1'}" in each for each in said)
    assert not (tmp_path / "a1.csv").exists() and not (tmp_path / "a1.html").exists()

    whole = subprocess.run(run, stdout=subprocess.PIPE, text=True, cwd=ROOT, check=True).stdout
    assert "4 were graded before" in whole and "(" not in whole.split("graded before")[1]
    together = rows(tmp_path)
    alone = [*arguments[:-2], f"--out={tmp_path / 'alone'}", arguments[-1]]
    grade.main([*alone, "--jobs=1"])
    for row in (one := rows(tmp_path / "alone")).values():
        row["seconds"] = together[row["student"]]["seconds"]
    assert together == one and {row["points"] for row in one.values()} == {
        str(MOST),
        str(MOST - WORTH),
    }


def test_the_checks_also_judge_functions_of_this_process(capsys):
    """As in a notebook: with the same words as from the other process."""
    with pytest.raises(AnswerError) as here:
        a1.dot_scores(lambda q, k: (q @ k.mT).mT)
    with Nursery() as nursery:
        student = Student(nursery)
        student.run("def f(q, k): return (q @ k.mT).mT", "f")
        with pytest.raises(AnswerError) as there:
            a1.dot_scores(student.get("f"))
        student.end()
    assert str(here.value) == str(there.value)


def hand_in(folder: Path, *students: str) -> list[str]:
    """A folder of right notebooks, and the arguments that grade it."""
    (folder / "handed-in").mkdir()
    for student in students:
        (folder / "handed-in" / f"{student}.ipynb").write_text(json.dumps(notebook()))
    asked = [*ASKED, "a1", str(folder / "handed-in")]
    return [*asked, f"--out={folder}", f"--solutions={SOLUTIONS}"]


def rows(folder: Path) -> dict[str, dict[str, str]]:
    return {row["student"]: row for row in csv.DictReader((folder / "a1.csv").open())}


@pytest.fixture
def quick(monkeypatch):
    """A grader that gives a point to all, and whose process ends over Eve."""

    def graded(student: str, *_: Any) -> grade.Graded:
        if student == "eve":
            os._exit(1)
        return grade.Graded(student, [Mark(CHECK, 1.0, 2.0, "")], "", [], 0.0)

    class NoNursery:
        def __init__(self, *_: Any): ...
        def __enter__(self) -> None: ...
        def __exit__(self, *_: Any) -> None: ...

    monkeypatch.setattr(grade, "grade", graded)
    monkeypatch.setattr(grade, "Nursery", NoNursery)
    monkeypatch.setattr(grade, "admitted", lambda *_: Stood([], {}))


def test_a_grader_that_is_killed_loses_one_student(tmp_path, quick):
    with pytest.raises(SystemExit, match="1 could not be graded: eve"):
        grade.main(hand_in(tmp_path, "ada", "bob", "eve", "sue", "tim"))
    points = {student: row["points"] for student, row in rows(tmp_path).items()}
    assert points == {"ada": "1.0", "bob": "1.0", "eve": "", "sue": "1.0", "tim": "1.0"}
    assert "needs a person: the grader failed" in rows(tmp_path)["eve"]["note"]


def test_a_name_is_kept_whatever_its_letters(tmp_path, quick):
    long, twin = "x" * 249, "ada/a1"
    arguments = hand_in(tmp_path, "ada", "b\udcff", long, "\x1b]0;c")
    (tmp_path / "handed-in" / twin).mkdir(parents=True)
    (tmp_path / "handed-in" / twin / "a1.ipynb").write_text("")
    grade.main(arguments)
    named = list(rows(tmp_path))
    assert len(named) == 5 and {"ada", "ada+", "b\\xff", "\x1b]0;c"} < set(named)
    assert len(list((tmp_path / "a1").glob("*.html"))) == 5


def test_results_that_cannot_be_read_are_made_again(tmp_path, quick, capsys):
    arguments = hand_in(tmp_path, "ada", "bob", "sue", "tim")
    grade.main(arguments)
    for student, said in {"ada": "{", "bob": "[]", "sue": "{}"}.items():
        (tmp_path / "a1" / f"{student}.json").write_text(said)
    grade.main(arguments)
    assert "1 were graded before" in capsys.readouterr().out
    assert len(rows(tmp_path)) == 4


@pytest.fixture(scope="module")
def nursery():
    with Nursery() as nursery:
        yield nursery


def test_many_slow_cells_end_as_one_does(tmp_path, nursery):
    nb = notebook()
    slow = {"cell_type": "code", "metadata": {}, "source": "import time\ntime.sleep(0.2)"}
    nb["cells"][3:3] = [slow] * 200
    (tmp_path / "ada.ipynb").write_text(json.dumps(nb))
    begin = time.monotonic()
    graded = sitting.grade("ada", tmp_path / "ada.ipynb", KNOWN, nursery, 60.0, 3.0)
    assert time.monotonic() - begin < 30  # the two hundred take forty
    assert "all cells together took too long" in graded.marks[-2].message


def test_a_loop_without_an_end_that_calls_what_it_was_given_ends(nursery):
    student = Student(nursery, seconds=1.0)
    student.run("def f(g):\n    for _ in range(10**6): g(1)", "f")
    student.hurry()
    with pytest.raises(GoneError, match="a loop without an end"):
        student.get("f")(lambda x: x)
    student.end()


def test_what_a_check_keeps_has_a_bound(nursery):
    """All that one question brings, however small its parts."""
    student, kept = Student(nursery), []
    student.run("import torch\ndef f(g):\n    for _ in range(64): g(torch.zeros(1 << 23))", "f")
    student.hurry()
    with pytest.raises(GoneError, match="more than 256 MB for one question"):
        student.get("f")(kept.append)
    assert sum(len(each) * 4 for each in kept) <= 1 << 28
    student.end()


def test_words_without_an_end_have_a_bound(nursery):
    student, kept = Student(nursery), []
    student.run("def f(g):\n    for _ in range(64): g('x' * (1 << 21))", "f")
    student.hurry()
    with pytest.raises(GoneError, match="more than 256 MB for one question"):
        student.get("f")(kept.append)
    student.end()


def test_objects_without_an_end_have_a_bound(nursery, monkeypatch):
    monkeypatch.setattr(wire, "OBJECTS", 100)
    student = Student(nursery)
    student.run("def f(g):\n    for _ in range(1000): g()", "f")
    student.hurry()
    with pytest.raises(GoneError, match="more than 100 objects"):
        student.get("f")(object)
    student.end()


def test_tokens_without_an_end_have_a_bound():
    """The student's process may send millions at once, each of them a number in a list."""
    asked = []

    def write_on(scores: Any, *_: Any) -> list[int]:
        asked.append(1)
        scores(torch.zeros(1 << 21, dtype=torch.int8))
        return []

    with pytest.raises(ValueError, match="tokens must be at most 1000, got 2097152"):
        a5.write_on(write_on)
    assert asked == [1]


def own_bound(_: int) -> tuple[int, int]:
    return resource.getrlimit(resource.RLIMIT_AS)[0], cage._size()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts a process's addresses")
def test_the_process_of_the_checks_has_a_bound_of_memory(tmp_path):
    with ProcessPoolExecutor(1, initializer=grade._worker, initargs=(str(tmp_path),)) as pool:
        (most, size), before = *pool.map(own_bound, [0]), resource.getrlimit(resource.RLIMIT_AS)[0]
    assert before == resource.RLIM_INFINITY and 0 < most < size + (5 << 30)


def test_the_grader_goes_before_a_student(nursery):
    student = Student(nursery)
    student.run("import os\npriority = os.nice(0)", "nice")
    assert student.get("priority") == min(os.nice(0) + 10, 19)
    student.end()


def test_a_process_that_ends_within_a_check_is_replaced():
    """By `Sitting`, to which the check leaves what it heard."""

    @check()
    def asked(answer: Any, seed: int = 0) -> None:
        raise GoneError("it took too long")

    with pytest.raises(GoneError, match="it took too long"):
        asked(lambda: None)


def test_other_walls_than_those_that_were_proved_are_refused():
    with (
        Nursery(None, ["paper"]) as other,
        pytest.raises(GoneError, match=r"must be of \['paper'\]"),
    ):
        Student(other)


def test_values_arrive_as_what_they_are(nursery):
    student = Student(nursery)
    student.run("import torch, numpy as np\nfrom torch import *\nx = torch.ones(2, 3)", "x")
    for source, wanted in {
        "np.float64(1.5)": 1.5,
        "np.int64(3)": 3,
        "x.shape": (2, 3),
        "x.expand(4, 2, 3).mT": torch.ones(4, 3, 2),
        "x.double()[0, 0].requires_grad_() * 2": torch.tensor(2.0).double(),
        "(x + 1j).conj()": torch.ones(2, 3) - 1j,
        "torch.zeros(0, 3)": torch.zeros(0, 3),
        "x.sort().indices.sum() > 3": torch.tensor(True),
        "(x.max(0))": (torch.ones(3), torch.zeros(3, dtype=torch.long)),
    }.items():
        student.run(f"y = {source}", "y")
        got = student.get("y")
        torch.testing.assert_close(got, wanted, rtol=0, atol=0)
    student.end()


def test_a_nursery_that_ends_is_replaced(tmp_path):
    hand_in(tmp_path, "ada")
    one = ("ada", tmp_path / "handed-in" / "ada.ipynb", SOLUTIONS / "a1.ipynb", TERMS)
    try:
        grade._one(*one)
        grade._here["nursery"]._process.kill()
        assert grade._one(*one).points == MOST
    finally:
        grade._here.pop("nursery").__exit__(None, None, None)


def test_a_nursery_takes_no_code_from_the_working_folder(tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("import pathlib\npathlib.Path('seen').write_text('')")
    monkeypatch.chdir(tmp_path)
    with Nursery() as nursery:
        Student(nursery).end()
    assert not (tmp_path / "seen").exists()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_grader_that_is_stopped_leaves_nothing_behind(walled, tmp_path, how):
    """No process; and where it hears of the stop, no folder of a student, and the table."""
    arguments, before = hand_in(tmp_path, "ada", "zoe"), sandboxes()
    (tmp_path / "tmp").mkdir()
    sleeps = {TASK: "import ctypes, time\nctypes.CDLL(None).prctl(1, 0)\ntime.sleep(60)"}
    (tmp_path / "handed-in" / "eve.ipynb").write_text(json.dumps(notebook(**sleeps)))
    run = [sys.executable, "-m", "attnbook.teach.grade", *arguments, "--jobs=1"]
    process = subprocess.Popen(
        run,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # nohup ignores it
    )
    assert line_of(process).startswith("ada")
    time.sleep(1)  # Eve's cell sleeps
    (os.killpg if how == signal.SIGINT else os.kill)(process.pid, how)
    process.wait(10)
    assert gone(before)
    if how != signal.SIGKILL:
        assert not [*(tmp_path / "tmp").iterdir()]
        assert "not graded yet" in (tmp_path / "a1.csv").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a9", "."], "must hold one notebook a9"),
        (["a1", "nowhere"], "submissions must be a folder, got nowhere"),
    ],
)
def test_wrong_arguments_are_named(arguments, said):
    with pytest.raises(SystemExit, match=said):
        grade.main([*arguments, f"--solutions={SOLUTIONS}"])


@pytest.mark.full
def test_nbgraders_own_commands_give_the_same_points(tmp_path):
    for where in ("source/a1", "submitted/ada/a1", "submitted/bob/a1"):
        (tmp_path / where).mkdir(parents=True)
    (tmp_path / "source/a1/a1.ipynb").write_bytes((SOLUTIONS / "a1.ipynb").read_bytes())
    (tmp_path / "submitted/ada/a1/a1.ipynb").write_text(json.dumps(notebook()))
    (tmp_path / "submitted/bob/a1/a1.ipynb").write_text(json.dumps(notebook(**{TASK: WRONG})))
    for command in ("generate_assignment a1", "autograde a1 --create", "export"):
        run = [sys.executable, "-m", "nbgrader", *command.split()]
        done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    released = json.loads((tmp_path / "release/a1/a1.ipynb").read_text())
    ours = json.loads((BOOK / "assignments" / "a1.ipynb").read_text())
    assert [c["source"] for c in released["cells"]] == [c["source"] for c in ours["cells"]]
    rows = csv.DictReader((tmp_path / "grades.csv").open())
    assert {r["student_id"]: float(r["score"]) for r in rows} == {"ada": MOST, "bob": MOST - WORTH}
