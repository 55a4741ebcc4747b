"""Pinterest's own Python library, in a process of its own.

It demands a urllib3 of 2024, which no other package may use, so `make test` puts it and what it needs beside our own
environment. And its import goes through the whole parent of the working directory in search of a `config.json`, so
that directory is an empty one.
"""

import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

LIBRARY = Path(sys.prefix) / "pinterest"
PROGRAM = Path(__file__).with_name("pinterest_sdk_program.py")


class PinterestRefusal(Exception):
    """What the library raised for an answer of Pinterest."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__(status, body)
        self.status = status
        self.body = body


class PinterestSdk:
    def __init__(self, folder: Path, url: str, **settings: str) -> None:
        """`folder`: an empty one; `url`: of the API; `settings`: the library's own, without `PINTEREST_`."""
        assert LIBRARY.is_dir(), "Pinterest's library is missing: run `make dev`"
        inner = folder / "inner"
        inner.mkdir()
        environment = {f"PINTEREST_{name.upper()}": value for name, value in {**settings, "api_uri": url}.items()}
        self._process = subprocess.Popen(
            [sys.executable, "-P", PROGRAM],
            cwd=inner,
            env={**environment, "PYTHONPATH": str(LIBRARY), "PYTHON_DOTENV_DISABLED": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> "PinterestSdk":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.communicate(timeout=60)

    def call(self, name: str, /, **arguments: Any) -> Any:
        """One call of the library, by its name in `pinterest_sdk_program.py`. Refusals are PinterestRefusal."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps([name, arguments]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "Pinterest's library broke: its last words are on standard error"
        answer = json.loads(line)
        if "result" not in answer:
            raise PinterestRefusal(answer["status"], json.loads(answer["body"]))
        return answer["result"]
