"""A child ends with its parent, so no process continues to publish."""

import subprocess
import sys

from socialpub.cli import run
from socialpub.cli.run import ChildProcess


def listens(child: ChildProcess) -> str:
    assert child.process.stdout is not None
    return child.process.stdout.readline().decode()


def test_a_child_that_is_asked_to_stop_stops_cleanly():
    child = ChildProcess("sandbox", "--listen", "127.0.0.1:0", log=subprocess.PIPE)
    assert listens(child).startswith("http://127.0.0.1:")
    assert child.stop() == 0
    for stream in (child.process.stdout, child.process.stderr):
        assert stream is not None
        stream.close()


PARENT = """
import os, signal, subprocess, sys
from socialpub.cli.run import ChildProcess
child = ChildProcess("sandbox", "--listen", "127.0.0.1:0", "--journal", sys.argv[1], log=subprocess.PIPE)
child.process.stdout.readline()
print(child.process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_child_whose_parent_was_killed_ends_by_itself(tmp_path):
    parent = subprocess.run(
        [sys.executable, "-c", PARENT, str(tmp_path / "journal")], stdout=subprocess.PIPE, text=True, check=False
    )
    assert parent.returncode == -9
    # `pidfd` becomes readable when the process has ended; no process can wait for the child.
    import os
    import select

    try:
        handle = os.pidfd_open(int(parent.stdout))
    except ProcessLookupError:
        return
    try:
        assert select.select([handle], [], [], 60)[0], "the child goes on without its parent"
    finally:
        os.close(handle)


def test_a_start_names_a_proxy_variable_that_cannot_be_used(monkeypatch, caplog):
    monkeypatch.setenv("all_proxy", "socks://user:hush-word@proxy.test:1080")
    run._warn_about_proxies()
    (line,) = caplog.messages
    assert "all_proxy" in line and "http://HOST:PORT" in line and "hush" not in line
