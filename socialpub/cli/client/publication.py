"""Sends posts from a shell: a post with its files in one call, or the parts of a thread (contract 10.5.3 to 10.5.5).

A killed or repeated command never makes a second post. Every create call has an Idempotency-Key and contains its files,
so two runs with the same key send the same request.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

import click

from socialpub.cli.client.arguments import REPLY_OPTION
from socialpub.cli.client.connection import ApplianceConnection, NotAccepted
from socialpub.cli.client.outcome import Json, Report
from socialpub.cli.output import print_note, progress_bar
from socialpub.core import progress
from socialpub.core.post_summary import Result

PART_SECONDS = 60
"""The wait for one part of a thread before the next part is sent. The appliance keeps the order in any case."""


@dataclass
class PostToSend:
    """A post to send: a whole post, or a part of a thread. `files` has the file of each `fileField` of the draft."""

    draft: Json
    once: str | None = None
    files: Mapping[str, Path] = field(default_factory=dict)


def new_key() -> str:
    """Return a random Idempotency-Key. A key from the content would drop an intended second post."""
    from secrets import token_urlsafe

    return token_urlsafe(16)


def send_thread(report: Report, parts: Sequence[PostToSend], *, strict: bool) -> Result:
    """Send each post as a reply to the one before it. Return the result of all. Raises NotAccepted.

    The networks' rules are checked for every part before the first part is public. A failed part ends the thread. A
    part without an outcome delays the later parts only for a minute.
    """
    for number, part in enumerate(parts[1:], 2):
        if strict and (problems := _find_problems(report.connection, part)) is not None:
            raise NotAccepted(f"Part {number} of {len(parts)}: {problems}")
    for number, part in enumerate(parts, 1):
        if report.posts:
            parent = report.posts[-1]["data"]
            set_reply(part.draft, parent["id"], {delivery["provider"] for delivery in parent["deliveries"]})
        end, is_last = f"The thread ends with part {number} of {len(parts)}.", number == len(parts)
        try:
            report.send(partial(create, report.connection, part, strict=strict))
        except NotAccepted:
            if len(parts) > 1:
                print_note(end)
            raise
        result = report.wait() if is_last else report.wait(PART_SECONDS)
        if result in (Result.FAILED, Result.UNKNOWN) and not is_last:
            print_note(end)
            return result
    return report.wait_for_all()


def create(connection: ApplianceConnection, part: PostToSend, *, strict: bool) -> Json:
    """Send a post with its files in one call. Return the appliance's response. Raises NotAccepted."""
    query = {"strict": "true"} if strict else {}
    with _opened(part.files) as files:
        payload = json.dumps(part.draft)
        body: Json = {"data": {"payload": payload}, "files": files} if files else json_body(payload)
        response: Json = connection.post("posts", idempotency_key=part.once or new_key(), params=query, **body)
    if connection.is_replay and part.once is not None:
        print_note(f"--once {part.once} was used before. Nothing new is accepted.")
        with suppress(NotAccepted):  # the response shows the post at its acceptance
            response = connection.get_once("posts", response["data"]["id"])
    return response


def json_body(text: str) -> Json:
    # The client's own JSON is not ASCII, and an argument that is not UTF-8 would end it with a traceback.
    return {"content": text, "headers": {"content-type": "application/json"}}


def _find_problems(connection: ApplianceConnection, part: PostToSend) -> str | None:
    """Return why a network would refuse the post. Raises NotAccepted."""
    checked = connection.post("posts", "validate", **json_body(json.dumps(part.draft)))["data"]["deliveries"]
    messages = [problem["message"] for delivery in checked for problem in delivery["problems"]]
    return "\n- ".join(dict.fromkeys(messages)) or None


def set_reply(draft: Json, post_id: str, networks: Iterable[str]) -> None:
    """Make the draft a reply to this post (contract 10.7.1)."""
    options: dict[str, Json] = draft.get("providerOptions", {})
    for name in networks:
        if REPLY_OPTION in options.get(name, {}):
            raise click.UsageError(f"--reply-to and --option {name}.{REPLY_OPTION} name two posts. Use one of them.")
    draft["providerOptions"] = options | {name: {**options.get(name, {}), REPLY_OPTION: post_id} for name in networks}


# --- files -----------------------------------------------------------------------------------------------------------


class _SentFile:
    """A file that reports how much of it is sent. Every attempt to send it begins with `seek(0)`."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size_bytes: int = -1) -> bytes:
        piece = self._file.read(size_bytes)
        progress.advance(len(piece))
        return piece

    def seek(self, position: int) -> int:
        progress.advance(position - self._file.tell())
        return self._file.seek(position)

    def fileno(self) -> int:
        return self._file.fileno()


@contextmanager
def _opened(files: Mapping[str, Path]) -> Iterator[dict[str, tuple[str, Any, str]]]:
    """Open the files as parts of a form. The appliance finds each type in the bytes, so no type is declared."""
    with ExitStack() as opened:
        parts = {}
        if files:
            opened.enter_context(progress_bar(lines=False))
            progress.begin("Sending")
        for name, path in files.items():
            try:
                file = opened.enter_context(path.open("rb"))
            except OSError as error:
                raise click.UsageError(f"--media {path}: {error.strerror}.") from None
            progress.expect(path.stat().st_size)
            parts[name] = (path.name.encode("utf-8", "replace").decode(), _SentFile(file), "application/octet-stream")
        yield parts
