"""What the queue file holds: a delivery's id as JSON, and nothing else. Reading it makes nothing but that id, whoever
wrote it."""

import json

from huey.registry import Message

from socialpub.core import ids

TASK = "socialpub.wakeup.deliver"
"""The one task, as Huey names it."""


def write(delivery_id: str) -> bytes:
    return json.dumps({"delivery": delivery_id}).encode()


def read(data: bytes) -> str | None:
    """The id; None for what no socialpub wrote."""
    try:
        found = json.loads(data)
    except (TypeError, ValueError, RecursionError):  # SQLite keeps a value of any type
        return None
    if not isinstance(found, dict) or found.keys() != {"delivery"} or not isinstance(found["delivery"], str):
        return None
    return ids.parse(found["delivery"])


class WakeupSerializer:
    """In the place of Huey's own, which pickles."""

    def serialize(self, message: Message) -> bytes:
        return write(*message.args)

    def deserialize(self, data: bytes) -> Message:
        """Raises ValueError."""
        delivery_id = read(data)
        if delivery_id is None:
            raise ValueError("this is no wake-up")
        return Message(id=None, name=TASK, args=(delivery_id,), kwargs={})
