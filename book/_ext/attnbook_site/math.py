"""Mathematics typeset by KaTeX at build time: no script on the page.

The renderer, the style sheet and the fonts come from npm's `katex` (package.json), so that they
have the same version. `fonts` puts the fonts in place.
"""

import re
import socket
import subprocess
import time
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ConfigError
from sphinxcontrib import katex

from .places import EXT, NPM

DIST = NPM / "katex/dist"
STYLE = "katex/katex.min.css"

# Only woff2 is kept: every browser that runs the widgets reads it.
OTHER_FORMATS = re.compile(r',url\([^)]*\) format\("(?:woff|truetype)"\)')


def start_server(
    cls: type[katex.KaTeXServer], rundir: Path, timeout: float
) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start KaTeX's server and connect to it, even on a slow machine.

    sphinxcontrib-katex connects as soon as the socket exists, which may be before the
    server listens, and leaves the server running when a build is killed.
    """
    path = rundir / "katex.sock"
    command = cls.build_command(socket=path)
    command[1:1] = ["--require", str(EXT / "stop-with-parent.cjs")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, cwd=rundir)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    start = time.monotonic()
    while time.monotonic() - start < timeout and process.poll() is None:
        try:
            connection.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            time.sleep(0.01)
        else:
            return process, connection
    connection.close()
    if process.poll() is not None:
        raise katex.KaTeXError(
            f"KaTeX's server ended at once, status {process.returncode}; node says why above"
        )
    process.kill()
    raise cls.timeout_error(timeout)


def configure(app: Sphinx, config: Config) -> None:
    if not DIST.is_dir():
        raise ConfigError("KaTeX is missing: run `make book`, or `npm ci` at the repository's root")
    config.katex_prerender = True
    config.katex_js_path = str(DIST / "katex.min.js")
    config.katex_css_path = STYLE
    katex.KaTeXServer.start_server_process = classmethod(start_server)  # type: ignore
    katex.STARTUP_TIMEOUT = katex.RENDER_TIMEOUT = 60.0  # seconds; a busy machine is slow
    # An error in a formula fails the build instead of showing up red on the page.
    katex.KATEX_DEFAULT_OPTIONS = {"throwOnError": True, "strict": "error"}


def finish(app: Sphinx) -> None:
    target = Path(app.outdir) / "_static/katex"
    target.mkdir(parents=True, exist_ok=True)
    style = (DIST / "katex.min.css").read_text(encoding="utf-8")
    (target / "katex.min.css").write_text(OTHER_FORMATS.sub("", style), encoding="utf-8")


def setup(app: Sphinx) -> None:
    app.connect("config-inited", configure)
