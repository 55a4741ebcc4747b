"""Damaged files through reserve, PUT and complete of a real web process, and what they did to it."""

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from random import Random

import httpx2

from tests.bench import memory
from tests.e2e.caller import Caller
from tests.e2e.installation import Installation
from tests.e2e.processes import Process
from tests.endurance.media_fuzz import mutation, samples

CALLERS = 4
WARM_UP = 60
"""Files after which every decoder was used once, and what the process keeps for good is there."""
LOOK_EVERY = 100


@dataclass(slots=True)
class Taken:
    """What the web process holds."""

    memory_mb: float
    descriptors: int
    threads: int

    @classmethod
    def by(cls, pid: int) -> "Taken":
        threads = len(list(Path(f"/proc/{pid}/task").iterdir()))
        return cls(memory.resident_mb(pid), len(list(Path(f"/proc/{pid}/fd").iterdir())), threads)


@dataclass(slots=True)
class Report:
    answers: Counter[str] = field(default_factory=Counter)
    """By the file's suffix and the answer of `complete`."""
    violations: list[str] = field(default_factory=list)
    took: list[Taken] = field(default_factory=list)
    """After the first files, in between, at the end."""
    verified: int = 0

    def table(self) -> str:
        lines = [f"{name:18} {count:7}" for name, count in sorted(self.answers.items())]
        first, last, most = self.took[0], self.took[-1], max(taken.memory_mb for taken in self.took)
        lines.append(
            f"web process: {first.memory_mb:.1f} MB after {WARM_UP} files, {last.memory_mb:.1f} MB at the end, at most "
            f"{most:.1f} MB; descriptors {first.descriptors} then {last.descriptors}"
        )
        return "\n".join(lines)


class MediaFuzz:
    """`kept` is where files go that were answered as none may be. The same seed makes the same files."""

    def __init__(self, installation: Installation, web: Process, seed: int, kept: Path) -> None:
        self._installation, self._web, self._seed, self._kept = installation, web, seed, kept
        sound = installation.folder / "sound"
        sound.mkdir()
        self._sound = samples.make(sound)
        self._local = threading.local()
        self._lock = threading.Lock()
        self.report = Report()

    def play(self, files: int) -> Report:
        """Upload this number of files, then check for leftovers."""
        with ThreadPoolExecutor(CALLERS) as pool:
            list(pool.map(self._one, range(min(WARM_UP, files))))
            self._look()
            for start in range(WARM_UP, files, LOOK_EVERY):
                list(pool.map(self._one, range(start, min(start + LOOK_EVERY, files))))
                self._look()
                if not self._web.running:
                    break
        self.report.violations += self._left_behind()
        return self.report

    def file(self, number: int) -> tuple[str, bytes]:
        """The name of what was damaged, and what became of it."""
        rng = Random(f"{self._seed}/{number}")
        name = list(self._sound)[number % len(self._sound)]
        return name, mutation.damaged(rng, name, self._sound[name], list(self._sound.values()))

    def _one(self, number: int) -> None:
        name, data = self.file(number)
        suffix = PurePath(name).suffix
        try:
            answer = self._complete(self._caller(), name, samples.TYPES[suffix], data)
        except httpx2.HTTPError as error:
            self._violation(number, f"{type(error).__name__}: {error}")
            return
        refused = answer.status_code == 400 and [one["path"] for one in answer.json()["errors"]] == [["artifactId"]]
        with self._lock:
            self.report.answers[f"{suffix} {answer.status_code}"] += 1
            self.report.verified += answer.status_code == 200
        if answer.status_code != 200 and not refused:
            self._violation(number, f"{answer.status_code} {answer.text[:300]}")

    @staticmethod
    def _complete(caller: Caller, name: str, mime_type: str, data: bytes) -> httpx2.Response:
        reserved = caller.ask(
            "POST", "/api/v1/uploads", json={"fileName": name, "mimeType": mime_type, "fileSize": len(data)}
        ).json()["data"]
        put = caller.ask("PUT", reserved["uploadUrl"], content=data, headers=reserved["requiredHeaders"])
        if put.status_code != 200:
            return put
        return caller.ask("POST", "/api/v1/uploads/complete", json={"artifactId": reserved["artifactId"]})

    def _caller(self) -> Caller:
        if not hasattr(self._local, "caller"):
            with self._lock:
                self._local.caller = self._installation.fresh_caller()
        caller: Caller = self._local.caller
        return caller

    def _look(self) -> None:
        if self._web.running:
            self.report.took.append(Taken.by(self._web.pid))

    def _violation(self, number: int, said: str) -> None:
        name, data = self.file(number)
        self._kept.mkdir(parents=True, exist_ok=True)
        (self._kept / f"{self._seed}-{number}-{name}").write_bytes(data)
        with self._lock:
            self.report.violations.append(f"file {number} of seed {self._seed} ({name}): {said}")

    def _left_behind(self) -> Iterator[str]:
        if not self._web.running:
            yield f"the web process has ended:\n{self._web.output[-2000:]}"
            return
        if children := self._web.children():
            yield f"decoder processes are left: {children}"
        first, last = self.report.took[0], self.report.took[-1]
        if last.descriptors > first.descriptors + CALLERS:
            yield f"{last.descriptors} open files, {first.descriptors} at first"
        if last.memory_mb > first.memory_mb * 1.25 + 10:
            yield f"the web process has grown from {first.memory_mb:.0f} to {last.memory_mb:.0f} MB"
        data = self._installation.data
        media = [path for path in (data / "media").rglob("*") if path.is_file()]
        if len(media) != self.report.verified:
            yield f"{len(media)} files are stored, {self.report.verified} were verified"
        if temporary := [path.name for path in Path(self._installation.env["TMPDIR"]).rglob("*")]:
            yield f"temporary files are left: {temporary[:10]}"
        if "Traceback" in self._web.output or " ERROR " in self._web.output:
            yield f"the log contains errors:\n{self._web.output[-2000:]}"
