"""A sample: the data folder as a killed process left it, what the sandbox remembers, and what the posts say."""

import json
import tarfile
from dataclasses import asdict, dataclass
from pathlib import Path

SAMPLES = Path(__file__).parents[1] / "samples" / "upgrades"
FACTS, JOURNAL = "facts.json", "sandbox.jsonl"
DISPOSABLE = ("run", "queue.db", "queue.db-wal", "queue.db-shm", "avatars")


@dataclass(frozen=True, slots=True)
class SampleFacts:
    taken_at: str
    """When the processes were killed."""
    sandbox_url: str
    key: str
    """An API key of the sample."""
    replayed: dict[str, str]
    """The `Idempotency-Key` of a request whose answer it keeps, and the id of the post that it made."""
    reserved: str
    """The id of an artifact whose bytes never came."""
    lapsed: str
    """The name of the account whose tokens its network has taken back."""
    posts: dict[str, str]
    """The body of every post by its id."""


def names() -> list[str]:
    return sorted(path.name.removesuffix(".tar.xz") for path in SAMPLES.glob("*.tar.xz"))


def pack(name: str, data: Path, journal: Path, facts: SampleFacts) -> Path:
    target = SAMPLES / f"{name}.tar.xz"
    described = data.parent / FACTS
    described.write_text(json.dumps(asdict(facts), indent=1))
    with tarfile.open(target, "w:xz", preset=9) as tar:
        tar.add(described, FACTS, filter=_nobodys)
        tar.add(journal, JOURNAL, filter=_nobodys)
        for path in sorted(data.rglob("*")):
            inside = path.relative_to(data)
            if path.is_file() and inside.parts[0] not in DISPOSABLE:
                tar.add(path, f"data/{inside}", filter=_nobodys)
    return target


def unpack(name: str, folder: Path) -> SampleFacts:
    """`data/` and the sandbox's journal, in this folder."""
    with tarfile.open(SAMPLES / f"{name}.tar.xz") as tar:
        tar.extractall(folder, filter="data")
    facts: dict[str, object] = json.loads((folder / FACTS).read_text())
    return SampleFacts(**facts)  # type: ignore[arg-type]


def _nobodys(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info
