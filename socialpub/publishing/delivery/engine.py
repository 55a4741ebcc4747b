"""Run a profile's due deliveries: claim in a short transaction, call the network, settle in a short transaction."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from socialpub.core import logging
from socialpub.core.clock import parse, parse_id
from socialpub.core.errors import Unavailable
from socialpub.db.delivery import Delivery
from socialpub.db.tables import delivery_rows, profile_rows
from socialpub.providers.base import CallTrace, Held, Published, Refused, Unknown
from socialpub.publishing.delivery import claim, profile_queue, read_back, settle
from socialpub.publishing.delivery import step as step_delivery
from socialpub.publishing.delivery.claim import Preflight
from socialpub.publishing.delivery.deliveries import Run
from socialpub.publishing.delivery.step import Limited, NeedsReauth, Result, Retry, Undecidable
from socialpub.publishing.media import renditions
from socialpub.publishing.posts import content as post_content
from socialpub.runtime import Runtime

log = logging.get_logger("socialpub.publisher")

_LOGGED_AS: dict[type, str] = {read_back.NotFoundOnAccount: "missing", NeedsReauth: "needsowner"}
"""The `outcome` of log events, where it is not the name of the result's class."""


def work(rt: Runtime, delivery_id: str, others_wait: Callable[[], bool] = lambda: False) -> bool:
    """Take up what is due in the queue of this delivery's profile, oldest first, as long as no other profile waits.

    Return True when it stopped for another profile: more may be due. Otherwise nothing is left, nothing can be done
    now, or somebody else works on the queue. Raises Unavailable when the database takes no claim.
    """
    profile_id = delivery_rows.profile_of(rt.reader, delivery_id)
    last = None
    while profile_id is not None and not rt.stopping.is_set():
        candidate = profile_queue.next_due(rt.reader, profile_id, rt.stamp(), rt.process)
        if candidate is None or candidate.id == last or not rt.process.take(candidate.id):
            return False
        try:
            _run_delivery(rt, candidate)
        finally:
            rt.process.let_go(candidate.id)
        last = candidate.id
        if others_wait():
            # A pause, or a full disk, has changed nothing: then the next round of the reconciler is soon enough.
            return delivery_rows.find(rt.reader, candidate.id) != candidate
    return False


def _run_delivery(rt: Runtime, candidate: Delivery) -> None:
    delivery: Delivery | None
    pending = rt.engine.pending_writes.get(candidate.id)
    if pending is not None:
        delivery = _settle(rt, *pending)
    else:
        preflight = None if candidate.plan or candidate.phase.reads_back else prepare(rt, candidate)
        delivery = rt.write(claim.claim, candidate.id, preflight)
    while delivery is not None:
        delivery = advance(rt, delivery)
    if not delivery_rows.is_open(rt.reader, candidate.id):
        renditions.forget(rt, candidate.id)
        read_back.forget(rt, candidate.id)


def forget_ended(rt: Runtime) -> None:
    """Drop what is remembered of deliveries that others have ended: an owner who stopped them, say."""
    remembered = {*rt.engine.read_back_at, *rt.engine.announced_at}
    for delivery_id in remembered:
        if not delivery_rows.is_open(rt.reader, delivery_id):
            read_back.forget(rt, delivery_id)
    clean_marks(rt)


def prepare(rt: Runtime, delivery: Delivery) -> Preflight:
    """Check the content as `validate` does and make the plan. Pure but for reading; the claim stores it."""
    profile = profile_rows.find(rt.reader, delivery.profile_id)
    assert profile is not None
    content = post_content.load_content(rt, rt.reader, delivery.post_id)
    try:
        with mark_examination(rt, delivery.id):
            problems = post_content.check_content(rt, profile, content, delivery.options)
            if problems:
                refused = " ".join(problem.message for problem in problems)
                return Preflight(content, delivery.options, refused=Refused(refused, content=True))
            provider = rt.providers[delivery.provider]
            steps = provider.plan(content, provider.read_options(delivery.options)[0])
    except Deadly:
        refused = f"Not sent: the worker died {MAX_EXAMINATION_DEATHS} times while it examined this post. Change it."
        return Preflight(content, delivery.options, refused=Refused(refused, content=True))
    except (Unavailable, sqlite3.OperationalError, OSError) as error:
        log.warning("a post cannot be examined just now", delivery_id=delivery.id, reason=str(error))
        return Preflight(content, delivery.options, later="It could not be examined just now.")
    except Exception:
        # The rest of its queue would wait behind it forever.
        log.error("a post could not be examined", exc_info=True, delivery_id=delivery.id)
        refused = "Not sent: socialpub failed unexpectedly when it examined this post; its log says why."
        return Preflight(content, delivery.options, refused=Refused(refused))
    return Preflight(content, delivery.options, tuple((step.name, step.kind.value) for step in steps))


def advance(rt: Runtime, delivery: Delivery) -> Delivery | None:
    """Run the next step of a claimed delivery and settle it. The delivery again when it goes on at once."""
    with logging.bind(post_id=delivery.post_id, delivery_id=delivery.id, provider=delivery.provider):
        started_at, step, seen = rt.stamp(), delivery.step_name, CallTrace()
        result = step_delivery.run(rt, delivery, seen)
        run = Run(started_at, seen.code, seen.request_id, seen.answered, seen.message, seen.grant)
        following = _settle(rt, delivery, result, run)
        _log(rt, delivery, step, result, run)
    return following


def _settle(rt: Runtime, delivery: Delivery, result: Result, run: Run) -> Delivery | None:
    """Write down how it ended. What the disk does not take is kept, and written when the delivery is taken up again."""
    try:
        following = rt.write(settle.settle, delivery, result, run)
    except (Unavailable, sqlite3.OperationalError) as error:
        rt.engine.pending_writes[delivery.id] = (delivery, result, run)
        log.error("the end of a step could not be written down yet", reason=str(error))
        return None
    except Exception:
        log.error("a step could not be settled", exc_info=True, step=delivery.step_name)
        following = rt.write(settle.settle, delivery, step_delivery.interpret_crash(delivery), run)
    rt.engine.pending_writes.pop(delivery.id, None)
    return following


def _log(rt: Runtime, delivery: Delivery, step: str, result: Result, run: Run) -> None:
    level: logging.Level
    match result:
        case Refused(message) | Unknown(message) | Undecidable(message):
            level, text = "warning", message
        case NeedsReauth(message):
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
    outcome = _LOGGED_AS.get(type(result)) or type(result).__name__.lower()
    log.write(
        level,
        text or f"{step}: {outcome}",
        step=step,
        outcome=outcome,
        provider_code=run.code,
        provider_request_id=run.request_id,
        waits_until=_waits_until(rt, delivery) if not isinstance(result, Published | Refused) else None,
    )


def _waits_until(rt: Runtime, delivery: Delivery) -> datetime | None:
    run_at = delivery_rows.queued_until(rt.reader, delivery.id)
    return None if run_at is None else parse(run_at)


# --- examinations that kill the worker -------------------------------------------------------------------------------

MAX_EXAMINATION_DEATHS = 3
MAX_MARKS = MAX_EXAMINATION_DEATHS - 1
"""The first of the deaths left none."""


class Deadly(Exception):
    """The examination of this post has killed too many workers."""


@contextmanager
def mark_examination(rt: Runtime, delivery_id: str) -> Iterator[None]:
    """Leave a mark that stays when this process dies meanwhile. Raises `Deadly` when there are too many."""
    # The id of a row that a stranger wrote may be anything, a path for example.
    if not rt.process.follows_a_death or parse_id(delivery_id) is None:
        yield
        return
    folder = _marks_dir(rt)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    mark = folder / delivery_id
    begun = mark.stat().st_size if mark.exists() else 0
    if begun >= MAX_MARKS:
        mark.unlink(missing_ok=True)
        raise Deadly
    with mark.open("ab") as file:
        file.write(b".")
    try:
        yield
    except Exception:
        mark.unlink(missing_ok=True)
        raise
    mark.unlink(missing_ok=True)


def clean_marks(rt: Runtime) -> None:
    """Remove the marks of deliveries that ended otherwise."""
    folder = _marks_dir(rt)
    for mark in folder.iterdir() if folder.is_dir() else ():
        if not delivery_rows.is_open(rt.reader, mark.name):
            mark.unlink(missing_ok=True)


def _marks_dir(rt: Runtime) -> Path:
    return rt.settings.run_dir / "examined"
