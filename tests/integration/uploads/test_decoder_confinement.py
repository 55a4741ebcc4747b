"""A compromised decoder can read one file, and can open no socket and start no program."""

from collections.abc import Iterator

import pytest

from socialpub.media.decoder import client, confinement
from socialpub.media.types import FitLimits, MediaLimits
from socialpub.ops import health
from socialpub.ops.doctor import checks
from socialpub.ops.health import Finding, Level
from socialpub.runtime import Runtime
from tests.samples import media
from tests.support.decoding import child

TRIES = """
import ctypes, os, resource, socket, subprocess, threading
from pathlib import Path

def taken_over(request):
    own = Path(request["path"])
    secret = own.with_name("secret.key")
    tries = {
        "read its file": own.read_bytes,
        "read the secret": secret.read_bytes,
        "read the machine's users": Path("/etc/passwd").read_bytes,
        "read the environment of its parent": Path(f"/proc/{os.getppid()}/environ").read_bytes,
        "list the folder": lambda: os.listdir(own.parent),
        "change its file": lambda: own.write_bytes(b""),
        "write a file": lambda: own.with_name("new").write_bytes(b""),
        "remove the secret": secret.unlink,
        "rename the secret": lambda: secret.rename(own.with_name("found")),
        "open a socket to the network": socket.socket,
        "open a socket to this machine": lambda: socket.socket(socket.AF_UNIX),
        "start a program": lambda: subprocess.run(["/bin/true"]),
        "become a program": lambda: os.execv("/bin/true", ["true"]),
        "signal its parent": lambda: os.kill(os.getppid(), 0),
        "signal a thread of its parent": lambda: called("tkill", os.getppid(), 0),
        "signal a thread of its parent by another call": lambda: called("tgkill", os.getppid(), os.getppid(), 0),
        "empty the secret": lambda: os.truncate(secret, 0),
        "show the secret to all": lambda: secret.chmod(0o644),
        "change the secret's owner": lambda: os.chown(secret, os.getuid(), os.getgid()),
        "change the secret's times": lambda: os.utime(secret),
        "mark the secret": lambda: os.setxattr(secret, "user.mark", b""),
        "use the calls of another numbering": lambda: called(0x40000000 + 39),
        "take files away from its parent": lambda: resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (99, 99)),
        "give its parent less time": lambda: os.setpriority(os.PRIO_PROCESS, os.getppid(), 19),
        "give its parent other processors": lambda: os.sched_setaffinity(os.getppid(), os.sched_getaffinity(0)),
        "outlive its end": lambda: os.fork() or os._exit(0),
        "outlive its end by another call": lambda: called(435, 0, 0),
        "enter a namespace": lambda: libc("unshare", 0x10000000),
        "enter a namespace of its parent": lambda: libc("setns", 0, 0x10000000),
        "read the keys of the kernel": lambda: called("keyctl", 0, -3, 1),
        "store a key in the kernel": lambda: called("add_key", 0, 0, 0, 0, -3),
        "handle page faults": lambda: called("userfaultfd", 1),
        "share memory": lambda: libc("shmget", 0, 4096, 0o1600),
        "share a semaphore": lambda: libc("semget", 0, 1, 0o1600),
        "share a queue": lambda: libc("msgget", 0, 0o1600),
        "share a named queue": lambda: libc("mq_open", b"/found", 0o102, 0o600, 0),
        "watch files": lambda: libc("inotify_init1", 0),
        "watch files by the older call": lambda: libc("inotify_init"),
        "limit itself": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
        "start a thread": lambda: threading.Thread(target=int).start(),
    }
    return {"kind": "", "mime_type": "", "size_bytes": 0, "facts": {name: worked(one) for name, one in tries.items()}}

def called(number, *arguments):
    if isinstance(number, str):
        number = confinement._REFUSED[number][0 if os.uname().machine == "x86_64" else 1]
    if ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments)) < 0:
        raise OSError

def libc(name, *arguments):
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) < 0:
        assert ctypes.get_errno() == 1, name
        raise OSError

def worked(one):
    try:
        one()
    except OSError:
        return False
    return True
"""


OLDER = """
syscall = confinement._syscall

def older(number, *arguments):
    found = syscall(number, *arguments)
    return min(found, {version}) if number == confinement._CREATE_RULESET and arguments[0] is None else found

confinement._syscall = older
"""


def offers_landlock() -> bool:
    try:
        version = confinement._CREATE_RULESET, None, 0, confinement._VERSION
        return confinement._syscall(*version) >= 1
    except OSError:
        return False


@pytest.fixture(autouse=True)
def lacks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ...]]:
    client.inspect_file(media.png(tmp_path_factory.mktemp("probe") / "a.png"), "image/png", MediaLimits())
    found = client.last_start.lacks
    assert found is not None
    assert (confinement.LANDLOCK in found) is not offers_landlock(), "what the kernel offers is used"
    yield found


@pytest.mark.parametrize("version", [1, 2, 3, 5, 7])
def test_a_compromised_decoder_cannot_read_secrets_open_sockets_or_start_programs(
    tmp_path, monkeypatch, lacks, version
):
    """`version` is the version of Landlock. Each version denies more."""
    if lacks:
        pytest.skip(f"this machine's kernel does not offer {' and '.join(lacks)}")
    (tmp_path / "secret.key").write_text("never to be seen")
    path = media.png(tmp_path / "a.png")
    older = (
        f"{TRIES}\n{OLDER.format(version=version)}\nprocess._load_work = lambda request: lambda: taken_over(request)"
    )
    monkeypatch.setattr(client, "_COMMAND", child(older))
    tried = client.inspect_file(path, "image/png", MediaLimits()).facts
    assert {name for name, worked in tried.items() if worked} == {"read its file", "limit itself", "start a thread"}
    assert len(tried) == 40


def test_a_decoder_can_write_only_its_target(tmp_path, monkeypatch, lacks):
    if confinement.LANDLOCK in lacks:
        pytest.skip("this machine's kernel does not offer Landlock")
    source, target = media.jpeg(tmp_path / "a.jpg", 320, 240), tmp_path / "b.jpg"
    writes = "target = __import__('pathlib').Path(request['target'])"
    attack = (
        f"def attack(request):\n    {writes}\n    target.write_bytes(b'its own')\n"
        "    target.with_name('c.jpg').write_bytes(b'another')\n"
        "process._load_work = lambda request: lambda: attack(request)"
    )
    limits = FitLimits(("image/jpeg",), 100_000, max_width=160)
    assert client.fit(source, target, limits)["width"] == 160
    monkeypatch.setattr(client, "_COMMAND", child(attack))
    with pytest.raises(client.DecoderFailed, match="Permission denied"):
        client.fit(source, target, limits)
    assert target.read_bytes() == b"its own"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.jpg", "b.jpg"]


@pytest.mark.parametrize("kind", ["image", "video"])
def test_no_thread_of_a_decoder_begins_before_it_is_confined(tmp_path, monkeypatch, kind):
    """Landlock confines the calling thread and its later threads."""
    before = (
        "import os, pathlib, sys\nconfine = confinement.confine\ndef counted(*paths):\n"
        "    if len(os.listdir('/proc/self/task')) != 1: sys.exit('a thread before its time')\n"
        "    return confine(*paths)\nconfinement.confine = counted"
    )
    monkeypatch.setattr(client, "_COMMAND", child(before))
    path = media.png(tmp_path / "a.png") if kind == "image" else media.video_mp4(tmp_path / "a.mp4", 0.25)
    assert client.inspect_file(path, None, MediaLimits()).kind == kind


def decoder_findings(rt: Runtime) -> list[Finding]:
    return [finding for finding in checks.check_machine(rt) if finding.subject == "decoder"]


@pytest.mark.parametrize(
    ("without", "lacking"),
    [
        ("confinement._CREATE_RULESET = 100_000", ("Landlock",)),
        ("confinement._ARCHITECTURES = {}", ("seccomp",)),
        ("confinement._ARCHITECTURES = {}; confinement._CREATE_RULESET = 100_000",
         ("Landlock", "seccomp")),
    ],
)  # fmt: skip
def test_without_kernel_support_media_are_inspected_and_doctor_reports_it(
    rt, tmp_path, monkeypatch, without, lacking,
    lacks,
):  # fmt: skip
    if lacks:
        pytest.skip(f"this machine's kernel does not offer {' and '.join(lacks)}")
    path = media.png(tmp_path / "a.png")
    monkeypatch.setattr(client.last_start, "lacks", None)
    rt.write(health.record_heartbeat)
    assert not decoder_findings(rt), "no decoder has answered yet"
    client.last_start.lacks = tuple(lacks)
    rt.write(health.record_heartbeat)
    assert [finding.level for finding in decoder_findings(rt)] == [Level.OK]
    monkeypatch.setattr(client, "_COMMAND", child(without))
    assert client.inspect_file(path, "image/png", MediaLimits()).kind == "image"
    assert client.last_start.lacks == lacking
    rt.write(health.record_heartbeat)
    (found,) = decoder_findings(rt)
    assert found.level is Level.NOTE
    assert f"does not offer {' and '.join(lacking)}" in found.message
