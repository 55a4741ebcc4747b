"""Run a profile's due deliveries: claim in a short transaction, call the network, settle in a short transaction."""

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from socialpub.accounts import remedies, tokens
from socialpub.core import logging
from socialpub.core.clock import parse
from socialpub.core.errors import OperatorError, Unavailable
from socialpub.core.secrets import redaction
from socialpub.db import clock_jumps
from socialpub.db.delivery import Delivery, Progress
from socialpub.db.models import DeliveryRow, ProfileRow
from socialpub.db.queries import profile_queue
from socialpub.db.states import CommittingAgain, ProfileStatus, State
from socialpub.db.tables import delivery_rows, profile_rows, waits
from socialpub.providers.base import (
    Again,
    CallTrace,
    CannotTell,
    Content,
    Done,
    Held,
    Job,
    Published,
    Readback,
    Refused,
    Unfit,
    Unknown,
    Withdrawn,
)
from socialpub.providers.responses import (
    AppRefused,
    AuthExpired,
    HttpResponse,
    NoAnswer,
    NotSent,
    ProviderError,
    Rejected,
    Throttled,
    http_date,
    plausible_wait,
    storable,
)
from socialpub.publishing.delivery import claim, read_back, settle, waiting
from socialpub.publishing.delivery.claim import interpret_unusable, not_readable
from socialpub.publishing.delivery.read_back import STOPPED, NotFoundOnAccount
from socialpub.publishing.delivery.results import Limited, NeedsReauth, Result, Retry, Undecidable
from socialpub.publishing.media import renditions
from socialpub.publishing.media.link_pages import LinkFetcher
from socialpub.publishing.posts import content as post_content
from socialpub.publishing.posts import replies
from socialpub.runtime import Runtime

log = logging.get_logger(__name__)

# --- the queue of a profile ------------------------------------------------------------------------------------------


def work(rt: Runtime, profile_id: str, others_wait: Callable[[], bool] = lambda: False) -> bool:
    """Run the due deliveries of this profile, oldest first, until another profile waits.

    Return whether more may be due. Raises Unavailable when the database cannot store a claim.
    """
    last = None
    while not rt.stopping.is_set():
        candidate = find_next_due(rt, profile_id)
        if candidate is None or candidate.id == last or not rt.process.claim_in_process(candidate.id):
            return False
        try:
            _run_delivery(rt, candidate)
        finally:
            rt.process.release(candidate.id)
        last = candidate.id
        if others_wait():
            # After a pause or on a full disk the row is unchanged: the next round of the reconciler is soon enough.
            return delivery_rows.find(rt.db, candidate.id) != candidate
    return False


def find_next_due(rt: Runtime, profile_id: str) -> Delivery | None:
    """Return the profile's orphaned delivery, else its oldest due one. None while a delivery runs."""
    running = delivery_rows.list_running(rt.db, profile_id)
    if not running:
        limits = rt.settings.publishing
        return profile_queue.oldest_due(rt.db, profile_id, rt.stamp(), limits.max_lateness, limits.give_up_after)
    if rt.process.works_on(running[0].owner or "", running[0].id):
        return None
    return delivery_rows.find(rt.db, running[0].id)


def list_due_queues(rt: Runtime) -> list[tuple[str, str]]:
    """Return the network and the id of each profile with a due or orphaned delivery, the longest waiting first."""
    limits = rt.settings.publishing
    orphans = [row for row in delivery_rows.list_running(rt.db) if not rt.process.works_on(row.owner or "", row.id)]
    due = profile_queue.due_per_profile(rt.db, rt.stamp(), limits.max_lateness, limits.give_up_after)
    return list(dict.fromkeys([(row.provider, row.profile_id) for row in orphans] + due))


def _run_delivery(rt: Runtime, candidate: Delivery) -> None:
    run = Run(profile_rows.get(rt.db, candidate.profile_id))
    unsettled = rt.engine.take_result(candidate.id)
    if unsettled is not None:
        delivery = _settle(rt, *unsettled)
    else:
        preflight = None
        if not (candidate.plan or candidate.phase.reads_back):
            preflight = claim.prepare(rt, candidate, run.profile)
            run.content = preflight.content
        delivery = rt.write(claim.claim, candidate.id, preflight, run.profile)
    has_one_step = False
    while delivery is not None:
        has_one_step = len(delivery.plan or ()) == 1
        delivery = advance(rt, delivery, run)
        if delivery is not None:
            run.profile = profile_rows.get(rt.db, candidate.profile_id)
    if not delivery_rows.is_open(rt.db, candidate.id):
        rt.engine.forget(candidate.id)
        if not has_one_step:  # a commit alone makes no renditions
            renditions.forget(rt, candidate.id)


@dataclass(slots=True)
class Run:
    """What a run of a delivery loads once."""

    profile: ProfileRow
    """As it was before the step that runs."""
    content: Content | None = None
    begun: bool = False
    """Whether the step may have sent a call."""


def advance(rt: Runtime, delivery: Delivery, run: Run) -> Delivery | None:
    """Run the next step of a claimed delivery and settle it. Return the delivery if it goes on at once."""
    with logging.bind(post_id=delivery.post_id, delivery_id=delivery.id, provider=delivery.provider):
        trace, step, run.begun = CallTrace(started_at=rt.stamp()), delivery.step_name, False
        # A result must not contain a token of the account, or a text that cannot be stored.
        result = storable(redaction.mask_value(_run_step(rt, delivery, run, trace)))
        texts = (trace.code, trace.message, trace.request_id)
        trace.code, trace.message, trace.request_id = redaction.mask_value(storable(texts))
        following = _settle(rt, delivery, result, trace)
        _log(delivery, step, result, trace)
    return following


def _settle(
    rt: Runtime, delivery: Delivery, result: Result, trace: CallTrace, *, crashed: bool = False
) -> Delivery | None:
    """Store how a step ended. If the disk fails, the next claim of the delivery stores it."""
    try:
        return rt.write(settle.settle, delivery, result, trace)
    except (Unavailable, sqlite3.OperationalError) as error:
        rt.engine.keep_result(delivery.id, delivery, result, trace)
        log.error("the result of a step could not be stored yet", reason=str(error))
        return None
    except Exception:
        log.error("a step could not be settled", exc_info=True, step=delivery.step_name)
        if crashed:
            raise
        bare = CallTrace(started_at=trace.started_at)
        return _settle(rt, delivery, _interpret_crash(delivery), bare, crashed=True)


def _log(delivery: Delivery, step: str, result: Result, trace: CallTrace) -> None:
    outcome = type(result).__name__.lower()
    level: logging.Level = "debug"
    text = f"{step}: {outcome}"
    match result:
        case Published(post_id, url):
            notes = delivery.memo.get("notes", ())
            level, text = "info", " ".join(filter(None, ("published", post_id, url, *notes)))
        case Held(reason):
            text = reason  # reported once, when the hold begins
        case Refused() | Unknown() | Retry() | Limited() | NeedsReauth() | Undecidable():
            level, text = "warning", result.message
    log.write(level, text, step=step, outcome=outcome, provider_code=trace.code, provider_request_id=trace.request_id)


# --- one step --------------------------------------------------------------------------------------------------------


class ClaimedAgain(Exception):
    """The call may not be sent now. The next claim decides: it ends a stopped delivery, or reads back first."""


READ_BACK_FIRST = "The account is read back again first."


def _run_step(rt: Runtime, delivery: Delivery, run: Run, trace: CallTrace) -> Result:
    """Run the next step, or read the account back. Return every error of the network as a result."""
    profile = run.profile
    if profile.status != ProfileStatus.ACTIVE and (unusable := interpret_unusable(delivery, profile)) is not None:
        return unusable
    try:
        token = tokens.load_valid(rt, profile)
        if token is None:
            token = tokens.load_fresh(rt, profile.id)
            run.profile = profile_rows.get(rt.db, profile.id)
        try:
            return _call_network(rt, delivery, run, token, trace)
        except AuthExpired:
            run.begun = False  # the network refused the call
            token = tokens.replace_spent(rt, profile.id, spent=token)
            run.profile = profile_rows.get(rt.db, profile.id)
            return _call_network(rt, delivery, run, token, trace)
    except ProviderError as error:
        trace.request_id = error.request_id or trace.request_id
        return _interpret_error(rt, delivery, error, trace)
    except Withdrawn as withdrawn:
        return _not_sendable(delivery, str(withdrawn))
    except ClaimedAgain as again:
        return Retry(str(again), seconds=0.0)
    except Unfit as unfit:
        return Refused(str(unfit), content=True)
    except FileNotFoundError as missing:
        name = "one of its files"
        for media in run.content.media if run.content else ():
            if str(media.path) == str(missing.filename):
                name = f"{media.file_name} (media item {media.position + 1})"
        return Refused(f"A media file is missing in socialpub's storage: {name}.", content=True)
    except Unavailable as error:
        return Retry(error.detail)
    except OperatorError as error:
        return _not_sendable(delivery, f"{error.message} {error.hint or ''}".strip())
    except Exception:
        log.error("a step failed unexpectedly", exc_info=True, step=delivery.step_name)
        return _interpret_crash(delivery) if run.begun else CRASHED


def _call_network(rt: Runtime, delivery: Delivery, run: Run, token: str, trace: CallTrace) -> Result:
    provider, phase = rt.providers[delivery.provider], delivery.phase
    job = _build_job(rt, delivery, run, token, trace)
    if delivery.step_kind == "prepare" and not phase.reads_back:
        for media in job.content.media:
            media.path.stat()
    if isinstance(phase, CommittingAgain) and read_back.is_due(rt, delivery):
        raise ClaimedAgain(READ_BACK_FIRST)
    run.begun = True
    if not phase.reads_back:
        outcome = provider.run(delivery.step_name, job)
        if not isinstance(outcome, Again):
            return outcome
        if trace.refused and waiting.is_refused_for_hours(rt, delivery, trace.code):
            return Refused(f"{trace.message} {waiting.REFUSED_FOR_HOURS}", trace.code)
        return outcome.after(job.times(outcome.cause))
    match provider.recover(job):
        case CannotTell() if phase.is_uncalled:
            return NotFoundOnAccount(rt.clock.monotonic(), asked=False)
        case CannotTell(hint):
            return Undecidable(hint)
        case Done() as arrived:
            return arrived
        case Readback() as readback:
            result = _find_post(rt, delivery, readback)
            return _find_earlier(rt, delivery, job) or result if isinstance(result, NotFoundOnAccount) else result


def _find_post(rt: Runtime, delivery: Delivery, readback: Readback) -> Published | NotFoundOnAccount:
    """Return the candidate that is the post of this delivery.

    A candidate without visible words is not assigned while the outcome of another delivery is unknown.
    """
    db = rt.db
    seen_at, doubt = rt.clock.monotonic(), False
    for post in readback.candidates:
        of_another = delivery_rows.is_outcome_of_another(db, delivery, post.post_id)
        if post.post_id in readback.vague and (of_another or delivery_rows.others_past_commit(db, delivery)):
            doubt = True
        elif not of_another:
            return post
    # After a restore, the owner wants the post beside posts with other words. A post without words may be this post.
    similar = () if delivery.phase.is_uncalled else readback.similar
    others = (delivery_rows.is_outcome_of_another(db, delivery, post_id) for post_id in similar)
    return NotFoundOnAccount(seen_at, readback.whole, doubt or not all(others))


def _find_earlier(rt: Runtime, delivery: Delivery, job: Job) -> Undecidable | NotFoundOnAccount | None:
    """Search for the content before an edit: another installation may have published it."""
    provider = rt.providers[delivery.provider]
    for content, options in post_content.load_earlier_contents(rt, delivery):
        readback = provider.recover(replace(job, content=content, options=provider.read_options(options)[0]))
        result = _find_post(rt, delivery, readback) if isinstance(readback, Readback) else None
        if isinstance(result, Published):
            return Undecidable(
                f"The account shows the text from before the last edit ({result.url or result.post_id}). "
                "Delete that post first if the new text should be published."
            )
        if result is not None and result.similar:
            return result
    return None


# --- the job: what a network's adapter may know and use --------------------------------------------------------------

SLICE_SECONDS = 10.0
"""The approximate duration of one slice of an upload. A profile queue must not occupy a worker for a whole video."""


class _Calls:
    """The calls of one run. Each call is sent only if the post may still be sent."""

    def __init__(self, rt: Runtime, delivery: Delivery, trace: CallTrace) -> None:
        self._rt, self._delivery, self._trace = rt, delivery, trace
        self._has_called = False

    def call(self, method: str, url: str, **arguments: Any) -> HttpResponse:
        rt, network, trace = self._rt, self._delivery.provider, self._trace
        try:
            response = rt.http_for(network).call(method, url, check_allowed=self._check_allowed, **arguments)
        finally:
            self._has_called = True
        trace.answered = True
        if "token" in arguments:  # a call without a token does not go to the network's API
            rt.engine.set_network_clock(network, http_date(response.headers.get("date")), rt.clock.monotonic())
        return response

    def _check_allowed(self) -> None:
        """Raise Withdrawn if the profile was disconnected or the post was stopped."""
        rt, delivery = self._rt, self._delivery
        row, account = rt.db.get(DeliveryRow, delivery.id), rt.db.get(ProfileRow, delivery.profile_id)
        if row is None or (account is not None and not account.is_connected):
            raise Withdrawn("The profile was disconnected.")
        if (row.state, row.owner) != (State.RUNNING, rt.process.name):
            raise Withdrawn("The post was stopped.")
        if delivery.commits_next and not self._has_called:  # announced, but the call has not left yet
            if Progress.from_json(row.progress).stopped:
                raise ClaimedAgain(STOPPED)
            if isinstance(delivery.phase, CommittingAgain) and read_back.is_due(rt, delivery):
                raise ClaimedAgain(READ_BACK_FIRST)


def _build_job(rt: Runtime, delivery: Delivery, run: Run, token: str, trace: CallTrace) -> Job:
    trace.grant = run.profile.access_token
    run.content = run.content or post_content.load_content(rt, rt.db, delivery.post_id)
    options: Mapping[str, Any] = rt.providers[delivery.provider].read_options(delivery.options)[0]
    if delivery.reply_to is not None:
        options = replies.fill_in_parent(rt.db, delivery, options)
    began, now, place = rt.clock.monotonic(), rt.now(), ("delivery", delivery.id, "memo")
    committed_at = delivery.unknown_since
    moved = clock_jumps.total_shift(rt.db, rt.clock)
    links = cache(lambda: LinkFetcher(rt, delivery.id))
    return Job(
        content=run.content,
        options=options,
        account=tokens.to_account(run.profile),
        memo=dict(delivery.memo),
        token=token,
        call=_Calls(rt, delivery, trace).call,
        fit=lambda media, limits: renditions.fit_media(rt, delivery.id, media, limits),
        wall_now=now,
        even_now=now - moved,
        slice_over=lambda: rt.clock.monotonic() - began >= SLICE_SECONDS,
        committed_at=parse(committed_at) - moved if committed_at else None,
        since=lambda: read_back.search_from(rt, delivery),
        unknown_before=delivery.unknown_calls > 0,
        public_url=lambda media: renditions.public_url(rt, media),
        fetch=lambda url, max_bytes: links().fetch(url, max_bytes),
        fetch_image=lambda url, limits: links().fetch_image(url, limits),
        kept_file=lambda name: renditions.path_of(rt, delivery.id, name),
        seal=lambda text: rt.secrets.seal(text, *place).decode(),
        open=lambda sealed: rt.secrets.open(sealed.encode(), *place),
        times_back=delivery.progress.again,
        trace=trace,
    )


# --- what a failed call means for the post ---------------------------------------------------------------------------
#
# Exceptions describe the call, results describe the post. A network's own error table is asked first.


def _interpret_error(rt: Runtime, delivery: Delivery, error: ProviderError, trace: CallTrace) -> Result:
    match error:
        case NotSent():
            return Retry(error.message, error.code)
        case Throttled():
            # Under the steps' names, which every delivery of the profile shares.
            endpoints = {waits.step_endpoint(delivery.step_name), *error.steps}
            return Limited(plausible_wait(error.retry_after_seconds), endpoints, error.message, error.code)
        case AppRefused() | Rejected(reauth=False) if delivery.phase.is_uncalled and trace.answered:
            # An account that cannot be read does not block the post.
            return NotFoundOnAccount(rt.clock.monotonic(), asked=False)
        case AppRefused():
            return Held(error.message, error.code)
        case AuthExpired() | Rejected(reauth=True):
            return NeedsReauth(remedies.reconnect_message(delivery.provider, error.message), error.code)
        case Rejected() if delivery.phase.reads_back:
            return not_readable(error.message)
        case Rejected():
            return Refused(error.message, error.code, content=error.content)
        case NoAnswer() if delivery.commits_next:
            return Unknown(error.message, error.code)
        case NoAnswer(refuses=True) if waiting.is_refused_for_hours(rt, delivery, error.code):
            return Refused(f"{error.message} {waiting.REFUSED_FOR_HOURS}", error.code)
        case NoAnswer(refuses=True):
            trace.refused = True
            return Retry(error.message, error.code)
        case _:
            return Retry(error.message, error.code)


CRASHED = Retry("socialpub failed unexpectedly (see its log).")


def _interpret_crash(delivery: Delivery) -> Result:
    if delivery.commits_next:
        return Unknown("socialpub failed unexpectedly during the call (see its log)")
    return CRASHED


def _not_sendable(delivery: Delivery, message: str) -> Result:
    """Return the result for a delivery that can neither be sent nor read back."""
    return not_readable(message) if delivery.phase.may_be_public else Refused(message)
