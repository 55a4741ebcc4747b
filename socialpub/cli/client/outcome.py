"""The accepted posts of a command: waits for their outcome and prints it (contract 10.5.3, 10.5.7)."""

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from socialpub.cli.client.connection import ApplianceConnection, NotAccepted
from socialpub.cli.output import json_text, print_note, print_outcome
from socialpub.core import commands
from socialpub.core.post_summary import Result, judge, summarize
from socialpub.core.secrets.redaction import visible

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
    post and appears at the end. The end of the block prints it even after a failure. The time for sending is not
    waiting.
    """

    connection: ApplianceConnection
    as_json: bool
    seconds_left: float
    """The time that the command may still wait, for all posts together."""
    posts: list[Json] = field(default_factory=list)
    is_sending: bool = False

    def __enter__(self) -> "Report":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.as_json:
            for response in self.posts:
                print_outcome(json_text(response))
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            ids = ", ".join(response["data"]["id"] for response in self.posts)
            print_note(f"Interrupted. Accepted: {ids or 'nothing'}.")
            if self.is_sending:
                status = f"{commands.started_with()[-1]} status"
                print_note(f"The post that was just sent may also be accepted. `{status}` shows the newest posts.")
            sys.exit(INTERRUPTED)

    def send(self, create: Callable[[], Json]) -> None:
        """Call `create`, which sends a post and returns the response. Raises NotAccepted."""
        self.is_sending = True
        self.posts.append(create())
        self.is_sending = False
        if not self.as_json:
            print_outcome(self.posts[-1]["data"]["id"])

    def wait(self, at_most_seconds: float = math.inf) -> Result:
        """Wait for the newest post, and print its deliveries. Return its result."""
        return self._wait(len(self.posts) - 1, at_most_seconds)

    def wait_for_all(self) -> Result:
        """Wait for every post that is still pending, and print its deliveries again. Return the result of all."""
        for index, response in enumerate(self.posts):
            if judge(response["data"]) is Result.PENDING and self.seconds_left > 0:
                if not self.as_json:
                    print_outcome(response["data"]["id"])
                self._wait(index, math.inf)
        return judge(
            {"deliveries": [delivery for response in self.posts for delivery in response["data"]["deliveries"]]}
        )

    def _wait(self, index: int, at_most_seconds: float) -> Result:
        started = time.monotonic()
        response = self._poll(self.posts[index], min(self.seconds_left, at_most_seconds))
        self.seconds_left = max(0.0, self.seconds_left - (time.monotonic() - started))
        self.posts[index] = response
        if not self.as_json:
            for line in describe(self.connection, response["data"]):
                print_outcome(visible(line))
        return judge(response["data"])

    def _poll(self, response: Json, seconds: float) -> Json:
        """Return the post when it is final, or as it is after this time.

        The post is accepted, so a failure does not end the command with an error. A temporary failure causes a repeat.
        """
        deadline = time.monotonic() + seconds
        while judge(response["data"]) is Result.PENDING and (left := deadline - time.monotonic()) > 0:
            wait = max(1, min(int(left), MAX_POLL_SECONDS))
            timeout_seconds = wait + POLL_MARGIN_SECONDS
            try:
                path = "posts", response["data"]["id"]
                response = self.connection.get_once(*path, wait=wait, timeout_seconds=timeout_seconds)
            except NotAccepted as failed:
                if failed.retry_after_seconds is None:
                    print_note(f"The post is accepted, but its outcome cannot be read: {failed.message}")
                    self.seconds_left = 0.0
                    break
                self.connection.pause(min(left, max(REPEAT_SECONDS, failed.retry_after_seconds)))
        return response


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
