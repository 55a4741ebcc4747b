"""One step of one delivery: what to say to the network, and what its answer means for the post.

Claim in a short transaction, talk to the network with none open, settle in a short transaction. Exceptions speak about
the call, outcomes about the post; the table between the two (design: "The delivery") is `_meaning`.
"""

import json
import sqlite3
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from socialpub.accounts import cooldowns, profiles, remedies, tokens
from socialpub.core import logging, signed_urls
from socialpub.core.clock import parse
from socialpub.core.errors import OperatorError, Unavailable
from socialpub.db import delivery_rows
from socialpub.db.models import Delivery, Profile, ProfileStatus, Progress, State
from socialpub.providers.content import Account, Content, ImageLimits, MediaFile
from socialpub.providers.errors import AppRefused, AuthExpired, NoAnswer, NotSent, ProviderError, Rejected, Throttled
from socialpub.providers.job import CallTrace, Job, Unfit, Withdrawn
from socialpub.providers.outcomes import Again, CannotTell, Done, Held, Look, Published, Refused, Unknown
from socialpub.providers.protocol import Provider
from socialpub.publishing import claim, deliveries, posts, renditions, scheduling, settle
from socialpub.publishing.results import Limited, Missing, Opening, Result, Retry, Run, Undecidable
from socialpub.runtime import Runtime

SLICE_SECONDS = 10.0
"""Bytes go in slices of about this long, so that a lane never keeps a worker for a whole film."""

log = logging.get_logger("socialpub.publisher")


@dataclass(slots=True)
class EngineMemory:
    """What this process knows of deliveries beside their rows."""

    last_contact: dict[str, float] = field(default_factory=dict)
    """When it last asked a network about a delivery, on the monotonic clock: the wall clock may jump."""

    pending_writes: dict[str, tuple[Delivery, Result, Run]] = field(default_factory=dict)
    """What a network answered and the disk did not take yet."""


def work(rt: Runtime, delivery_id: str) -> None:
    """Take up everything due in the lane of this delivery, oldest first, until it is quiet, somebody else has it, or
    others should have their turn. Raises Unavailable when the database takes no claim."""
    profile_id = delivery_rows.lane_of(rt.reader, delivery_id)
    passed: set[str] = set()
    began = rt.clock.monotonic()
    while profile_id is not None and not rt.stopping.is_set():
        candidate = scheduling.next_due(rt.reader, profile_id, rt.stamp(), rt.process)
        if candidate is None or candidate.id in passed:
            return
        if rt.clock.monotonic() - began >= SLICE_SECONDS:
            rt.wakeup.ring(candidate.id)
            return
        passed.add(candidate.id)
        if not rt.process.take(candidate.id):
            return
        try:
            _take_up(rt, candidate)
        finally:
            rt.process.let_go(candidate.id)


def _take_up(rt: Runtime, candidate: Delivery) -> None:
    delivery: Delivery | None
    pending = rt.memory(EngineMemory).pending_writes.get(candidate.id)
    if pending is not None:
        delivery = _settle(rt, *pending)
    else:
        opening = None if candidate.plan or candidate.progress.reading_back else open_(rt, candidate)
        delivery = rt.write(claim.claim, candidate.id, opening)
    while delivery is not None:
        delivery = advance(rt, delivery)


def open_(rt: Runtime, delivery: Delivery) -> Opening:
    """Check the content as `validate` does and make the plan. Pure but for reading; the claim stores it."""
    profile = _profile(rt, delivery)
    content = posts.content(rt, rt.reader, delivery.post_id)
    try:
        problems = posts.check(rt, profile, content, delivery.options)
        if problems:
            refused = " ".join(problem.message for problem in problems)
            return Opening(content, delivery.options, refused=refused)
        provider = rt.providers[delivery.provider]
        steps = provider.plan(content, provider.read_options(delivery.options)[0])
    except Exception:
        # The rest of its lane would wait behind it for ever.
        log.error("a post could not be examined", exc_info=True, delivery_id=delivery.id)
        refused = "Not sent: socialpub failed unexpectedly when it examined this post; its log says why."
        return Opening(content, delivery.options, refused=refused)
    return Opening(content, delivery.options, tuple((step.name, step.kind.value) for step in steps))


def advance(rt: Runtime, delivery: Delivery) -> Delivery | None:
    """Run the next step of a claimed delivery and settle it. The delivery again when it goes on at once."""
    with logging.bind(post_id=delivery.post_id, delivery_id=delivery.id, provider=delivery.provider):
        started_at, step, seen = rt.stamp(), delivery.step_name, CallTrace()
        result = _run(rt, delivery, seen)
        run = Run(started_at, seen.code, seen.request_id, seen.answered, seen.message)
        following = _settle(rt, delivery, result, run)
        _log(rt, delivery, step, result, run)
    if following is None and not delivery_rows.is_open(rt.reader, delivery.id):
        renditions.forget(rt, delivery.id)
        rt.memory(EngineMemory).last_contact.pop(delivery.id, None)
    return following


def _settle(rt: Runtime, delivery: Delivery, result: Result, run: Run) -> Delivery | None:
    """Write down how it ended. What the disk does not take is kept, and written when the delivery is taken up again."""
    try:
        following = rt.write(settle.settle, delivery, result, run)
    except (Unavailable, sqlite3.OperationalError) as error:
        rt.memory(EngineMemory).pending_writes[delivery.id] = (delivery, result, run)
        log.error("the end of a step could not be written down yet", reason=str(error))
        return None
    except Exception:
        log.error("a step could not be settled", exc_info=True, step=delivery.step_name)
        following = rt.write(settle.settle, delivery, _failed_here(delivery), run)
    rt.memory(EngineMemory).pending_writes.pop(delivery.id, None)
    return following


def _run(rt: Runtime, delivery: Delivery, seen: CallTrace) -> Result:
    profile = _profile(rt, delivery)
    unusable = _unusable(profile)
    if unusable is not None:
        return _turned_away(delivery, unusable)
    if delivery.progress.reading_back and (early := _too_early(rt, delivery)):
        return early
    try:
        token = tokens.fresh(rt, profile.id)
        try:
            return _converse(rt, delivery, profile, token, seen)
        except AuthExpired:
            token = tokens.refresh(rt, profile.id, spent=token)
            return _converse(rt, delivery, _profile(rt, delivery), token, seen)
    except ProviderError as error:
        seen.request_id = error.request_id or seen.request_id
        return _meaning(delivery, error)
    except Withdrawn as withdrawn:
        return _turned_away(delivery, str(withdrawn))
    except Unfit as unfit:
        return Refused(str(unfit))
    except FileNotFoundError as missing:
        return Refused(f"A media file is missing in socialpub's storage: {_name_of(rt, delivery, missing)}.")
    except Unavailable as error:
        return Retry(error.detail)
    except OperatorError as error:
        return _turned_away(delivery, f"{error.message} {error.hint or ''}".strip())
    except Exception:
        log.error("a step failed unexpectedly", exc_info=True, step=delivery.step_name)
        return _failed_here(delivery)


def _failed_here(delivery: Delivery) -> Result:
    if delivery.commits_next:
        return Unknown("socialpub failed unexpectedly during the call; its log says why")
    return Retry("socialpub failed unexpectedly; its log says why.")


def _converse(rt: Runtime, delivery: Delivery, profile: Profile, token: str, seen: CallTrace) -> Result:
    provider = rt.providers[delivery.provider]
    content = posts.content(rt, rt.reader, delivery.post_id)
    if delivery.step_kind == "prepare" and not delivery.progress.reading_back:
        for media in content.media:
            media.path.stat()
    job = _job(rt, delivery, provider, posts.account_of(profile), content, token, seen)
    if not delivery.progress.reading_back:
        rt.memory(EngineMemory).last_contact[delivery.id] = rt.clock.monotonic()
        outcome = provider.run(delivery.step_name, job)
        return outcome.after(job.times(outcome.reason)) if isinstance(outcome, Again) else outcome
    match provider.recover(job):
        case CannotTell(hint):
            return Undecidable(hint)
        case Done() as arrived:
            return arrived
        case Look(candidates, whole):
            rt.memory(EngineMemory).last_contact[delivery.id] = rt.clock.monotonic()
            for post in candidates:
                if not delivery_rows.is_outcome_of_another(rt.reader, delivery, post.post_id):
                    return post
            return Missing(whole)


def _job(
    rt: Runtime, delivery: Delivery, provider: Provider, account: Account, content: Content, token: str, seen: CallTrace
) -> Job:
    began = rt.clock.monotonic()
    asked = False

    def gate() -> None:
        """Nothing is sent for a profile disconnected, or a post stopped, meanwhile."""
        row = delivery_rows.state_of(rt.reader, delivery.id)
        if row is None or row["profile_status"] == ProfileStatus.DISCONNECTED:
            raise Withdrawn("The profile was disconnected.")
        if (row["state"], row["held_by"]) != (State.RUNNING, rt.process.name):
            raise Withdrawn("The post was stopped.")
        if delivery.commits_next and not asked and Progress(**json.loads(row["progress"])).stopped:
            raise Withdrawn(deliveries.STOPPED)  # announced, but the call has not left yet

    def call(method: str, url: str, **arguments: Any) -> Any:
        nonlocal asked
        try:
            answer = rt.http.call(method, url, gate=gate, **arguments)
        finally:
            asked = True
        seen.answered = True
        return answer

    def fit(media: MediaFile, limits: ImageLimits) -> MediaFile:
        return renditions.fitted(rt, delivery.id, media, limits)

    return Job(
        content=content,
        options=provider.read_options(delivery.options)[0],
        account=account,
        memo=dict(delivery.memo),
        token=token,
        call=call,
        fit=fit,
        now=rt.now(),
        slice_over=lambda: rt.clock.monotonic() - began >= SLICE_SECONDS,
        committed_at=parse(since) if (since := delivery.progress.since or delivery.committed_at) else None,
        unknown_before=delivery.progress.commits > 0,
        public_url=lambda media: _public_url(rt, media),
        seal=lambda text: rt.secrets.seal(text).decode(),
        open=lambda sealed: rt.secrets.open(sealed.encode()),
        times_back=delivery.progress.again,
        trace=seen,
    )


def _public_url(rt: Runtime, media: MediaFile) -> str:
    """Good until the delivery is settled, whatever its network takes to fetch it."""
    lifetime = rt.settings.publishing.give_up_after + timedelta(hours=2)
    return signed_urls.media_url(rt.settings, rt.secrets, renditions.key_of(rt, media), rt.now(), lifetime)


# --- what it means ---------------------------------------------------------------------------------------------------


def _meaning(delivery: Delivery, error: ProviderError) -> Result:
    """What a failed call means for the post: the default table."""
    commits = delivery.commits_next
    match error:
        case NotSent():
            return Retry(error.message, error.code)
        case Throttled():
            # Under the step's name, which every delivery of the profile shares; the network's own says no more.
            endpoint = cooldowns.endpoint_of(delivery.step_name)
            return Limited(error.retry_after_seconds, endpoint, error.message, error.code)
        case AppRefused():
            return Held(error.message, error.code)
        case AuthExpired():
            return _reconnect(delivery, error)
        case Rejected() if error.reauth:
            return _reconnect(delivery, error)
        case Rejected():
            return _turned_away(delivery, error.message, error.code)
        case NoAnswer() if commits:
            return Unknown(error.message, error.code)
        case _:
            return Retry(error.message, error.code)


def _reconnect(delivery: Delivery, error: ProviderError) -> Result:
    how = remedies.reconnect(delivery.provider)
    message = f"{error.message.rstrip('.')}. Connect the account again (`{how}`), then create the post again."
    if delivery.progress.reading_back:
        return Undecidable(message)
    return Refused(message, error.code, reauth=True)


def _turned_away(delivery: Delivery, message: str, code: str | None = None) -> Result:
    """Nothing can be sent any more. What may be public already cannot be told either then."""
    if delivery.progress.reading_back:
        return Undecidable(f"It could not be read back: {message} Look at the account.")
    return Refused(message, code)


def _unusable(profile: Profile) -> str | None:
    match profile.status:
        case ProfileStatus.DISCONNECTED:
            how = remedies.reconnect(profile.provider)
            return f"The profile was disconnected. Connect the account again (`{how}`) and create the post anew."
        case ProfileStatus.REAUTH_REQUIRED:
            why = (profile.reason or "the network refuses its tokens").rstrip(".")
            return f"The account must be connected again (`{remedies.reconnect(profile.provider)}`): {why}."
        case _:
            return None


def _too_early(rt: Runtime, delivery: Delivery) -> Result | None:
    """The wall clock may jump; a post counts as absent only when the pauses between the looks really passed."""
    last = rt.memory(EngineMemory).last_contact.get(delivery.id)
    pause = deliveries.LOOK_AFTER_SECONDS[min(delivery.progress.looks, len(deliveries.LOOK_AFTER_SECONDS) - 1)]
    remaining = 0.0 if last is None else pause - (rt.clock.monotonic() - last)
    if remaining > 0.5:
        return Retry(f"The account is looked at again in {remaining:.0f} s.")
    return None


# --- inside ----------------------------------------------------------------------------------------------------------


def _profile(rt: Runtime, delivery: Delivery) -> Profile:
    profile = profiles.find(rt.reader, delivery.profile_id)
    assert profile is not None
    return profile


def _name_of(rt: Runtime, delivery: Delivery, missing: FileNotFoundError) -> str:
    for media in posts.content(rt, rt.reader, delivery.post_id).media:
        if str(media.path) == str(missing.filename):
            return f"{media.file_name} (media item {media.position + 1})"
    return "one of its files"


def _log(rt: Runtime, delivery: Delivery, step: str, result: Result, run: Run) -> None:
    level: logging.Level
    match result:
        case Refused(message) | Unknown(message) | Undecidable(message):
            level, said = "warning", message
        case Held(message):
            level, said = "debug", message  # told once, when the hold begins
        case Retry(message) | Limited(message=message):
            level, said = "warning", message
        case Published(post_id, url):
            told = (post_id, url, *delivery.memo.get("notes", ()))
            level, said = "info", " ".join(("published", *filter(None, told)))
        case _:
            level, said = "debug", ""
    log.write(
        level,
        said or f"{step}: {type(result).__name__.lower()}",
        step=step,
        outcome=type(result).__name__.lower(),
        provider_code=run.code,
        provider_request_id=run.request_id,
        waits_until=_waits_until(rt, delivery) if not isinstance(result, Published | Refused) else None,
    )


def _waits_until(rt: Runtime, delivery: Delivery) -> datetime | None:
    run_at = delivery_rows.queued_until(rt.reader, delivery.id)
    return None if run_at is None else parse(run_at)
