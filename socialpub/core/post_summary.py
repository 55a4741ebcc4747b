"""One line per delivery of a post, and the result of the post, for the shell and for agents.

Posts and attempts have the API's form (specification 2.2, contract 1.15).
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

OUTCOME_UNKNOWN = "Outcome unknown: "
"""The beginning of the error message of a delivery that may be public."""

Json = Mapping[str, Any]


class Result(IntEnum):
    """The result of a post. The values are the exit codes of the shell (contract 10.5.7)."""

    PUBLISHED = 0
    FAILED = 1
    """Also canceled: the post did not appear."""
    UNKNOWN = 3
    PENDING = 5


_BY_PRIORITY = {
    "unknown": Result.UNKNOWN, "pending": Result.PENDING, "failed": Result.FAILED, "canceled": Result.FAILED
}  # fmt: skip


def judge(post: Json) -> Result:
    """Return the most important result among the deliveries."""
    outcomes = set(map(api_outcome, post["deliveries"]))
    return next((result for outcome, result in _BY_PRIORITY.items() if outcome in outcomes), Result.PUBLISHED)


def api_outcome(delivery: Json) -> str:
    """Return the outcome of a delivery that the API shows. The API shows an unknown outcome as failed."""
    is_unknown = delivery.get("errorMessage", "").startswith(OUTCOME_UNKNOWN)
    return "unknown" if is_unknown else str(delivery["status"])


def summarize(post: Json, attempts: Sequence[Json] = ()) -> list[str]:
    """Return one line per delivery, such as `x: published https://…` (contract 10.4.5).

    `attempts` are those of the post, oldest first. The last one of a pending delivery says what it waits for.
    """
    last = {attempt["profileId"]: attempt for attempt in attempts}
    providers = [delivery["provider"] for delivery in post["deliveries"]]
    lines = []
    for delivery in post["deliveries"]:
        provider = delivery["provider"]
        name = provider if providers.count(provider) == 1 else f"{provider} {delivery['profileName']}"
        words = f"{name}: {_describe(post, delivery, last.get(delivery.get('profileId')))}".split()
        lines.append(" ".join(words))
    return lines


def _describe(post: Json, delivery: Json, attempt: Json | None) -> str:
    status, message = delivery["status"], delivery.get("errorMessage", "")
    if status == "published":
        if delivery["providerOptions"].get("mode") == "draft" and "providerPostId" not in delivery:
            return "published as a draft: the network's app shows it, and the owner finishes it there"
        return f"published {delivery.get('url', '')}"
    if status == "failed":
        return message if message.startswith(OUTCOME_UNKNOWN) else f"failed: {message}"
    if status == "pending" and attempt is not None and attempt["outcome"] in ("waiting", "held", "retrying"):
        return _describe_wait(attempt)
    if post["status"] == "scheduled":
        return f"scheduled for {post['scheduledAt']}"
    return str(status)


def next_try(attempt: Json) -> str | None:
    """Return the instant of the next try. The `nextAt` of a wait for approval or for another post is only its end."""
    return None if _waits(attempt) else attempt.get("nextAt")


def _waits(attempt: Json) -> bool:
    return str(attempt.get("message", "")).startswith("Waits ")


def _describe_wait(attempt: Json) -> str:
    message = attempt.get("message", "")
    if _waits(attempt):
        return f"w{message[1:]}"
    text = f"{attempt['outcome']}: {message}"
    return f"{text} Next try: {attempt['nextAt']}" if "nextAt" in attempt else text
