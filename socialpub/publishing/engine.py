"""Delivering: claim in a short transaction, talk to the network with none open, settle in a short transaction.

Taking up is in `claim.py`, the conversation in `step_run.py`, what a failed call means in `call_results.py`, writing
down in `settle.py`.
"""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from socialpub.accounts import profiles
from socialpub.core import logging
from socialpub.core.clock import parse
from socialpub.core.errors import Unavailable
from socialpub.db import delivery_rows
from socialpub.db.models import Delivery
from socialpub.providers.job import CallTrace
from socialpub.providers.outcomes import Held, Published, Refused, Unknown
from socialpub.publishing import (
    call_results,
    claim,
    examination,
    network_time,
    post_content,
    read_back,
    renditions,
    scheduling,
    settle,
    step_run,
)
from socialpub.publishing.results import Limited, NeedsOwner, Preflight, Result, Retry, Run, Undecidable
from socialpub.runtime import Runtime

log = logging.get_logger("socialpub.publisher")


@dataclass(slots=True)
class PendingWrites:
    """What networks answered and the disk did not take yet, by delivery."""

    of_delivery: dict[str, tuple[Delivery, Result, Run]] = field(default_factory=dict)


def work(rt: Runtime, delivery_id: str, others_wait: Callable[[], bool] = lambda: False) -> bool:
    """Take up what is due in the queue of this delivery's profile, oldest first, as long as no other profile waits.

    Return True when it stopped for another profile: more may be due. Otherwise nothing is left, nothing can be done
    now, or somebody else works on the queue. Raises Unavailable when the database takes no claim.
    """
    profile_id = delivery_rows.lane_of(rt.reader, delivery_id)
    last = None
    while profile_id is not None and not rt.stopping.is_set():
        candidate = scheduling.next_due(rt.reader, profile_id, rt.stamp(), rt.process)
        if candidate is None or candidate.id == last or not rt.process.take(candidate.id):
            return False
        try:
            _take_up(rt, candidate)
        finally:
            rt.process.let_go(candidate.id)
        last = candidate.id
        if others_wait():
            # A pause, or a full disk, has changed nothing: then the next round of the reconciler is soon enough.
            return delivery_rows.find(rt.reader, candidate.id) != candidate
    return False


def _take_up(rt: Runtime, candidate: Delivery) -> None:
    delivery: Delivery | None
    pending = rt.memory(PendingWrites).of_delivery.get(candidate.id)
    if pending is not None:
        delivery = _settle(rt, *pending)
    else:
        preflight = None if candidate.plan or candidate.progress.reading_back else prepare(rt, candidate)
        delivery = rt.write(claim.claim, candidate.id, preflight)
    while delivery is not None:
        delivery = advance(rt, delivery)
    if not delivery_rows.is_open(rt.reader, candidate.id):
        renditions.forget(rt, candidate.id)
        _forget(rt, candidate.id)


def forget_ended(rt: Runtime) -> None:
    """Drop what is remembered of deliveries that others have ended: an owner who stopped them, say."""
    remembered = {*rt.memory(read_back.LastLooks).of_delivery, *rt.memory(network_time.NetworkClocks).announced}
    for delivery_id in remembered:
        if not delivery_rows.is_open(rt.reader, delivery_id):
            _forget(rt, delivery_id)
    examination.clean(rt)


def _forget(rt: Runtime, delivery_id: str) -> None:
    read_back.forget(rt, delivery_id)
    network_time.forget(rt, delivery_id)


def prepare(rt: Runtime, delivery: Delivery) -> Preflight:
    """Check the content as `validate` does and make the plan. Pure but for reading; the claim stores it."""
    profile = profiles.find(rt.reader, delivery.profile_id)
    assert profile is not None
    content = post_content.of_post(rt, rt.reader, delivery.post_id)
    try:
        with examination.marked(rt, delivery.id):
            problems = post_content.check(rt, profile, content, delivery.options)
            if problems:
                refused = " ".join(problem.message for problem in problems)
                return Preflight(content, delivery.options, refused=Refused(refused, content=True))
            provider = rt.providers[delivery.provider]
            steps = provider.plan(content, provider.read_options(delivery.options)[0])
    except examination.Deadly:
        refused = f"Not sent: the worker died {examination.MOST_DEATHS} times while it examined this post. Change it."
        return Preflight(content, delivery.options, refused=Refused(refused, content=True))
    except (Unavailable, sqlite3.OperationalError, OSError) as error:
        log.warning("a post cannot be examined just now", delivery_id=delivery.id, reason=str(error))
        return Preflight(content, delivery.options, later="It could not be examined just now.")
    except Exception:
        # The rest of its lane would wait behind it for ever.
        log.error("a post could not be examined", exc_info=True, delivery_id=delivery.id)
        refused = "Not sent: socialpub failed unexpectedly when it examined this post; its log says why."
        return Preflight(content, delivery.options, refused=Refused(refused))
    return Preflight(content, delivery.options, tuple((step.name, step.kind.value) for step in steps))


def advance(rt: Runtime, delivery: Delivery) -> Delivery | None:
    """Run the next step of a claimed delivery and settle it. The delivery again when it goes on at once."""
    with logging.bind(post_id=delivery.post_id, delivery_id=delivery.id, provider=delivery.provider):
        started_at, step, seen = rt.stamp(), delivery.step_name, CallTrace()
        result = step_run.run(rt, delivery, seen)
        run = Run(started_at, seen.code, seen.request_id, seen.answered, seen.message, seen.grant)
        following = _settle(rt, delivery, result, run)
        _log(rt, delivery, step, result, run)
    return following


def _settle(rt: Runtime, delivery: Delivery, result: Result, run: Run) -> Delivery | None:
    """Write down how it ended. What the disk does not take is kept, and written when the delivery is taken up again."""
    try:
        following = rt.write(settle.settle, delivery, result, run)
    except (Unavailable, sqlite3.OperationalError) as error:
        rt.memory(PendingWrites).of_delivery[delivery.id] = (delivery, result, run)
        log.error("the end of a step could not be written down yet", reason=str(error))
        return None
    except Exception:
        log.error("a step could not be settled", exc_info=True, step=delivery.step_name)
        following = rt.write(settle.settle, delivery, call_results.of_own_failure(delivery), run)
    rt.memory(PendingWrites).of_delivery.pop(delivery.id, None)
    return following


def _log(rt: Runtime, delivery: Delivery, step: str, result: Result, run: Run) -> None:
    level: logging.Level
    match result:
        case Refused(message) | Unknown(message) | Undecidable(message):
            level, text = "warning", message
        case NeedsOwner(message):
            level, text = "warning", message
        case Held(message):
            level, text = "debug", message  # reported once, when the hold begins
        case Retry(message) | Limited(message=message):
            level, text = "warning", message
        case Published(post_id, url):
            parts = (post_id, url, *delivery.memo.get("notes", ()))
            level, text = "info", " ".join(("published", *filter(None, parts)))
        case _:
            level, text = "debug", ""
    log.write(
        level,
        text or f"{step}: {type(result).__name__.lower()}",
        step=step,
        outcome=type(result).__name__.lower(),
        provider_code=run.code,
        provider_request_id=run.request_id,
        waits_until=_waits_until(rt, delivery) if not isinstance(result, Published | Refused) else None,
    )


def _waits_until(rt: Runtime, delivery: Delivery) -> datetime | None:
    run_at = delivery_rows.queued_until(rt.reader, delivery.id)
    return None if run_at is None else parse(run_at)
