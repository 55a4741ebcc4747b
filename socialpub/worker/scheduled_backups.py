"""Backups that the worker starts every `[backup] every`, each in a process of its own.

A backup can read many gigabytes for minutes, and its command can wait for a network all night. The worker starts the
command that a timer would start, and logs how it ended.
"""

import os
import subprocess
import sys
from contextlib import suppress

from socialpub.core import logging
from socialpub.ops.backup import last_backup
from socialpub.runtime import Runtime

CHECK_SECONDS = 60.0
REST_SECONDS = 300.0
"""Until the next one can start, however one ended: if no row could be written, nothing else would delay the next."""
STOP_SECONDS = 3.0
NICE = 10

log = logging.get_logger("socialpub.copies")


class ScheduledBackups:
    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._not_before = 0.0
        """On the monotonic clock."""

    def check(self, rt: Runtime) -> None:
        """Start a backup that is due, or log how the last one ended."""
        every = rt.settings.backup.every
        if self._process is not None:
            if self._process.poll() is None:
                return
            self._log_end(rt, self._process.returncode)
            self._process, self._not_before = None, rt.clock.monotonic() + REST_SECONDS
        if every is None or rt.stopping.is_set() or rt.clock.monotonic() < self._not_before:
            return
        now = rt.now()
        if last_backup.next_at(last_backup.read(rt.reader), every, now) <= now:
            self._process = self._start(rt)

    def stop(self) -> None:
        """End a running backup. The next one removes what it left."""
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

    def _log_end(self, rt: Runtime, code: int) -> None:
        copy = last_backup.read(rt.reader)
        if code == 0:
            made = copy.scheduled
            log.info("a copy was made", copy=made and made.folder, new_bytes=made and made.new_bytes)
        else:
            log.error("a copy could not be made", exit_code=code, reason=copy.failure)
