"""Copies that the worker has made by itself, `[backup] every` so long: each in a process of its own.

A copy reads for minutes what may be many gigabytes, and its command may wait for a network all night. None of that
happens in the worker: it starts the same command that a timer would, and tells in the log how it ended.
"""

import os
import subprocess
import sys
from contextlib import suppress

from socialpub.core import logging
from socialpub.ops.copies import last_copy
from socialpub.runtime import Runtime

LOOK_SECONDS = 60.0
REST_SECONDS = 300.0
"""After one has ended, whatever became of it: when no row could be written, nothing else would keep the next away."""
STOP_SECONDS = 3.0
NICE = 10

log = logging.get_logger("socialpub.copies")


class ScheduledCopies:
    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._not_before = 0.0
        """On the monotonic clock."""

    def look(self, rt: Runtime) -> None:
        """Start one that is due, or tell how the last one ended."""
        every = rt.settings.backup.every
        if self._process is not None:
            if self._process.poll() is None:
                return
            self._tell(rt, self._process.returncode)
            self._process, self._not_before = None, rt.clock.monotonic() + REST_SECONDS
        if every is None or rt.stopping.is_set() or rt.clock.monotonic() < self._not_before:
            return
        now = rt.now()
        if last_copy.next_at(last_copy.read(rt.reader), every, now) <= now:
            self._process = self._start(rt)

    def stop(self) -> None:
        """End one that is being made: what it left is removed before the next one."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _start(self, rt: Runtime) -> "subprocess.Popen[bytes]":
        config = ["--config", str(rt.settings.config_file)] if rt.settings.config_file else []
        process = subprocess.Popen(  # noqa: S603  our own program
            [sys.executable, "-m", "socialpub", *config, "backup"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        with suppress(OSError):  # it has ended already
            os.setpriority(os.PRIO_PROCESS, process.pid, NICE)
        return process

    def _tell(self, rt: Runtime, code: int) -> None:
        copy = last_copy.read(rt.reader)
        if code == 0:
            made = copy.scheduled
            log.info("a copy was made", copy=made and made.folder, new_bytes=made and made.new_bytes)
        else:
            log.error("a copy could not be made", exit_code=code, reason=copy.failure)
