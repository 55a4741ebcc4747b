"""The accepted posts of a command: waits for their outcome and prints it (contract 10.5.3, 10.5.7)."""

import sys
import time
from dataclasses import dataclass, field
from typing import Any

from socialpub.cli.client.connection import ApplianceConnection, NotAccepted
from socialpub.cli.output import print_json, print_line, print_note
from socialpub.core import commands
from socialpub.core.post_summary import Result, judge, summarize

Json = dict[str, Any]

MAX_POLL_SECONDS = 60
"""The longest `?wait=` (contract section 4)."""
POLL_MARGIN_SECONDS = 20.0
REPEAT_SECONDS = 2.0

INTERRUPTED = 130
"""The exit code that shells use after Ctrl-C."""


@dataclass
class Report:
    """The accepted posts of one command, in the API's form (`{data: Post}`).

    Text appears as soon as it is known: the id at acceptance, a line per delivery after the wait. JSON has one line per
    post and appears at the end. The end of the block prints it even after a failure.
    """

    connection: ApplianceConnection
    as_json: bool
    posts: list[Json] = field(default_factory=list)

    def __enter__(self) -> "Report":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.as_json:
            for shown in self.posts:
                print_json(shown, indent=None)
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            ids = ", ".join(shown["data"]["id"] for shown in self.posts)
            print_note(f"Interrupted. Accepted: {ids or 'no response arrived'}.")
            print_note(f"`{commands.line('status')}` shows whether the post of an interrupted call is accepted.")
            sys.exit(INTERRUPTED)

    def accept(self, shown: Json) -> None:
        self.posts.append(shown)
        if not self.as_json:
            print_line(shown["data"]["id"])

    def wait(self, seconds: float) -> Result:
        """Wait for the newest post at most this long, and print its deliveries. Return its result."""
        self.posts[-1] = wait_for_outcome(self.connection, self.posts[-1], seconds)
        self._print_deliveries(self.posts[-1])
        return judge(self.posts[-1]["data"])

    def wait_for_all(self, deadline: float) -> Result:
        """Wait for every post until this instant of the monotonic clock. Print what has changed. Return the result."""
        for index, shown in enumerate(self.posts):
            left = deadline - time.monotonic()
            if judge(shown["data"]) is Result.PENDING and left > 0:
                self.posts[index] = wait_for_outcome(self.connection, shown, left)
                if not self.as_json:
                    print_line(shown["data"]["id"])
                self._print_deliveries(self.posts[index])
        return judge({"deliveries": [delivery for shown in self.posts for delivery in shown["data"]["deliveries"]]})

    def _print_deliveries(self, shown: Json) -> None:
        if not self.as_json:
            for line in describe(self.connection, shown["data"]):
                print_line(line)


def wait_for_outcome(connection: ApplianceConnection, shown: Json, seconds: float) -> Json:
    """Return the post when it is final, or as it is after this time.

    The post is accepted, so a failure does not end the command with an error. A temporary failure causes a repeat.
    """
    deadline = time.monotonic() + seconds
    while judge(shown["data"]) is Result.PENDING and (left := deadline - time.monotonic()) > 0:
        wait = max(1, min(int(left), MAX_POLL_SECONDS))
        try:
            timeout_seconds = wait + POLL_MARGIN_SECONDS
            shown = connection.get_once("posts", shown["data"]["id"], wait=wait, timeout_seconds=timeout_seconds)
        except NotAccepted as failed:
            if failed.retry_after_seconds is None:
                print_note(f"The post is accepted, but its outcome cannot be read: {failed.message}")
                break
            connection.pause(min(left, max(REPEAT_SECONDS, failed.retry_after_seconds)))
    return shown


def describe(connection: ApplianceConnection, post: Json) -> list[str]:
    """Return a line per delivery. The attempts of a pending post say what it waits for."""
    attempts: list[Json] = []
    if judge(post) is Result.PENDING:
        try:
            attempts = connection.get_once("posts", post["id"], "attempts")["data"]
        except NotAccepted:
            # The post itself is known. The reason of its wait is not worth an error.
            attempts = []
    return summarize(post, attempts)
