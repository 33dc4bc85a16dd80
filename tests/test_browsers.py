"""The site's scripts and styles ask no more of a browser than what the book promises."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tools.notebooks import ROOT

SHIPPED = ["src/attnbook/web", "book/_ext", "book/_static"]
NEWER = {
    "js": {  # lines, each with what is told of it
        "export const a = [2, 1].toSorted();": "ES2023 'Array.prototype.toSorted'",  # Firefox 115
        "export const b = Promise.withResolvers();": "ES2024 'Promise.withResolvers'",
        "export const c = (map) => map.values().map(String);": "Only lists have it",
        "export class D { static { this.a = 1; } }": "class static block",
        "export const e = /(?<=a)b/;": "lookbehind",
        "export const f = new URLPattern('/a');": "urlpattern",
        "export const g = (node) => (node.ariaLabel = 'a');": "Firefox 119 reflects ARIA",
        "export const h = Object.values({ a: [2].at(-1) }).map(String);": "",
    },
    "css": {
        "a { b { color: red; } }": "nesting",
        "a { color: light-dark(red, blue); }": "light-dark",
        "a { color: color-mix(in srgb, red, blue); }": "",
    },
}


def linted(*arguments: str, text: str = "") -> str:
    """What eslint finds, by `eslint.config.mjs`."""
    node = Path(sys.executable).with_name("node")
    command = [node, "node_modules/eslint/bin/eslint.js", "--no-inline-config", *arguments]
    done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def test_what_is_shipped_runs_in_the_oldest_browsers() -> None:
    assert linted(*SHIPPED) == ""


@pytest.mark.parametrize("kind", NEWER)
def test_what_is_too_new_is_seen(kind: str) -> None:
    found = linted("--stdin", f"--stdin-filename=a.{kind}", text="\n".join(NEWER[kind]))
    for n, told in enumerate(NEWER[kind].values(), 1):
        lines = re.findall(rf"^ +{n}:\d+ .*", found, re.MULTILINE)
        assert any(told in line for line in lines) if told else not lines, (n, found)


def test_the_promise_is_one() -> None:
    """The versions that readers are told are those that the check is made for.

    `tests/browsers.test.mjs` finds that no older ones would do."""
    versions = r"Chrome and Edge (\d+), Firefox (\d+) and\s+Safari (\d+\.\d)"
    told = re.findall(versions, (ROOT / "book/troubleshooting.md").read_text("utf-8"))
    kept = dict(line.split(" >= ") for line in package()["browserslist"])
    assert len(told) == 1
    chrome, firefox, safari = told[0]
    assert kept == {"chrome": chrome, "edge": chrome, "firefox": firefox, "safari": safari}


def package() -> dict[str, Any]:
    return json.loads((ROOT / "package.json").read_text("utf-8"))


def test_browser_tests_wait_for_what_they_need() -> None:
    """A fixed wait is too short on a busy machine and too long on others: each says why it is."""
    files = sorted((ROOT / "tests/browser").glob("*.py"))
    waits = [
        f"{file.name}: {line.strip()}"
        for file in files
        for line in file.read_text("utf-8").splitlines()
        if re.search(r"wait_for_timeout\(|time\.sleep\(", line)
    ]
    assert [wait for wait in waits if "  # " not in wait] == []
