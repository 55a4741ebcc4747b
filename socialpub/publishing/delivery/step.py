"""Run one step of a delivery: the calls to the network, and the result that they mean for the post."""

from collections.abc import Set
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from socialpub.accounts import hints, tokens
from socialpub.core import logging
from socialpub.core.clock import parse
from socialpub.core.errors import OperatorError, Unavailable
from socialpub.core.secrets import redaction, signed_urls
from socialpub.core.settings.loader import Settings
from socialpub.db import clock_jumps
from socialpub.db.delivery import Delivery, Progress
from socialpub.db.phases import ConfirmingInherited
from socialpub.db.states import ProfileStatus, State
from socialpub.db.tables import delivery_rows, holds, profile_rows
from socialpub.db.tables.profile_rows import Profile
from socialpub.providers.base import (
    Account,
    Again,
    CallTrace,
    CannotTell,
    Content,
    Done,
    Held,
    Job,
    MediaFile,
    Outcome,
    Published,
    Readback,
    Refused,
    Unfit,
    Unknown,
    Withdrawn,
)
from socialpub.providers.errors import (
    AppRefused,
    AuthExpired,
    NoAnswer,
    NotSent,
    ProviderError,
    Rejected,
    Throttled,
    plausible_wait,
)
from socialpub.providers.provider import Provider
from socialpub.publishing.delivery import read_back, waiting
from socialpub.publishing.delivery.read_back import STOPPED, NotFoundOnAccount
from socialpub.publishing.media import renditions
from socialpub.publishing.posts import content as post_content
from socialpub.runtime import Runtime

log = logging.get_logger("socialpub.publisher")

# --- results besides the network's own outcomes ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Retry:
    """A failure that passes: ask again in `seconds`, or after a growing pause. It certainly made nothing public."""

    message: str
    code: str | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Limited:
    """A rate limit of this profile and these endpoints: ask again in `seconds` (None: the network named no time)."""

    seconds: float | None
    endpoints: Set[str]
    message: str
    code: str | None = None


@dataclass(frozen=True, slots=True)
class NeedsReauth:
    """The account must be connected again before anything else is asked for it. `message` says how."""

    message: str
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Undecidable:
    """The network cannot tell what became of the commit. `hint` says where the owner can look."""

    hint: str


Result = Outcome | Retry | Limited | NotFoundOnAccount | NeedsReauth | Undecidable


# --- the run ---------------------------------------------------------------------------------------------------------


class ReadbackDue(Exception):
    """What came before a second call took so long that the account must be read back again first."""


def run(rt: Runtime, delivery: Delivery, trace: CallTrace) -> Result:
    """Run the next step, or read the account back. `trace` takes what the calls showed.

    Everything that a network does becomes a result. No result quotes a token of the account.
    """
    result = redaction.mask_value(_run(rt, delivery, trace))
    trace.code, trace.message, trace.request_id = redaction.mask_value((trace.code, trace.message, trace.request_id))
    return result


def _run(rt: Runtime, delivery: Delivery, trace: CallTrace) -> Result:
    profile = _profile(rt, delivery)
    unusable = interpret_unusable(delivery, profile)
    if unusable is not None:
        return unusable
    try:
        token = tokens.load_fresh(rt, profile.id)
        try:
            return _call_network(rt, delivery, token, trace)
        except AuthExpired:
            return _call_network(rt, delivery, tokens.replace_spent(rt, profile.id, spent=token), trace)
    except ProviderError as error:
        trace.request_id = error.request_id or trace.request_id
        return _interpret_error(rt, delivery, error, asked=trace.answered)
    except Withdrawn as withdrawn:
        if delivery.phase.may_be_public and str(withdrawn) == STOPPED:
            return Retry(STOPPED, seconds=0.0)  # the claim reads the account back once more, and ends it
        return _not_sendable(delivery, str(withdrawn))
    except ReadbackDue:
        return Retry("The account is looked at again first.", seconds=0.0)
    except Unfit as unfit:
        return Refused(str(unfit), content=True)
    except FileNotFoundError as missing:
        name = _file_name(rt, delivery, missing)
        return Refused(f"A media file is missing in socialpub's storage: {name}.", content=True)
    except Unavailable as error:
        return Retry(error.detail)
    except OperatorError as error:
        return _not_sendable(delivery, f"{error.message} {error.hint or ''}".strip())
    except Exception:
        log.error("a step failed unexpectedly", exc_info=True, step=delivery.step_name)
        return interpret_crash(delivery)


def _call_network(rt: Runtime, delivery: Delivery, token: str, trace: CallTrace) -> Result:
    profile = _profile(rt, delivery)
    trace.grant = profile.access_token
    provider = rt.providers[delivery.provider]
    content = post_content.load_content(rt, rt.reader, delivery.post_id)
    if delivery.step_kind == "prepare" and not delivery.phase.reads_back:
        for media in content.media:
            media.path.stat()
    job = _build_job(rt, delivery, provider, post_content.to_account(profile), content, token, trace)
    if read_back.is_due(rt, delivery):
        raise ReadbackDue
    if not delivery.phase.reads_back:
        outcome = provider.run(delivery.step_name, job)
        return outcome.after(job.times(outcome.reason)) if isinstance(outcome, Again) else outcome
    match provider.recover(job):
        case CannotTell() if isinstance(delivery.phase, ConfirmingInherited):
            return NotFoundOnAccount(rt.clock.monotonic(), asked=False)
        case CannotTell(hint):
            return Undecidable(hint)
        case Done() as arrived:
            return arrived
        case Readback() as readback:
            found = _find_post(rt, delivery, readback)
            return _find_earlier(rt, delivery, job) or found if isinstance(found, NotFoundOnAccount) else found


def _find_post(rt: Runtime, delivery: Delivery, readback: Readback) -> Published | NotFoundOnAccount:
    """Return the candidate that is the post of this delivery.

    What another delivery made is not ours. A candidate that does not show its words belongs to no delivery while the
    outcome of another delivery is unknown.
    """
    reader = rt.reader
    seen_at, doubt = rt.clock.monotonic(), False
    for post in readback.candidates:
        of_another = delivery_rows.is_outcome_of_another(reader, delivery, post.post_id)
        if post.post_id in readback.vague and (of_another or delivery_rows.others_past_commit(reader, delivery)):
            doubt = True
        elif not of_another:
            return post
    # An owner who sends it after a restore wants it beside posts with other words. One without words may be this post.
    similar = () if isinstance(delivery.phase, ConfirmingInherited) else readback.similar
    others = (delivery_rows.is_outcome_of_another(reader, delivery, post_id) for post_id in similar)
    return NotFoundOnAccount(seen_at, readback.whole, doubt or not all(others))


def _find_earlier(rt: Runtime, delivery: Delivery, job: Job) -> Undecidable | NotFoundOnAccount | None:
    """Search for the content before an edit: another installation may have published that before."""
    provider = rt.providers[delivery.provider]
    for content, given in post_content.earlier_contents(rt, delivery):
        readback = provider.recover(replace(job, content=content, options=provider.read_options(given)[0]))
        found = _find_post(rt, delivery, readback) if isinstance(readback, Readback) else None
        if isinstance(found, Published):
            return Undecidable(
                f"The account shows the text from before the last edit ({found.url or found.post_id}). "
                "Delete that post first if the new text should be published."
            )
        if found is not None and found.similar:
            return found
    return None


def _profile(rt: Runtime, delivery: Delivery) -> Profile:
    profile = profile_rows.find(rt.reader, delivery.profile_id)
    assert profile is not None
    return profile


def _file_name(rt: Runtime, delivery: Delivery, missing: FileNotFoundError) -> str:
    for media in post_content.load_content(rt, rt.reader, delivery.post_id).media:
        if str(media.path) == str(missing.filename):
            return f"{media.file_name} (media item {media.position + 1})"
    return "one of its files"


# --- the job: what a network's adapter may know and use --------------------------------------------------------------

SLICE_SECONDS = 10.0
"""Bytes go in slices of about this long, so that no profile queue occupies a worker for a whole video."""


def _build_job(
    rt: Runtime,
    delivery: Delivery,
    provider: Provider,
    account: Account,
    content: Content,
    token: str,
    trace: CallTrace,
) -> Job:
    began, asked = rt.clock.monotonic(), False
    moved = clock_jumps.moved(rt.reader, rt.clock)
    place = ("delivery", delivery.id, "memo")
    committed_at = delivery.unknown_since

    def check_still_allowed() -> None:
        """Send nothing for a profile that was disconnected, or a post that was stopped, in the meantime."""
        row = delivery_rows.state_of(rt.reader, delivery.id)
        if row is None or row.profile_status == ProfileStatus.DISCONNECTED:
            raise Withdrawn("The profile was disconnected.")
        if (row.state, row.held_by) != (State.RUNNING, rt.process.name):
            raise Withdrawn("The post was stopped.")
        if delivery.commits_next and not asked:  # announced, but the call has not left yet
            if Progress.read(row.progress).stopped:
                raise Withdrawn(STOPPED)
            if read_back.is_due(rt, delivery):
                raise ReadbackDue

    def call(method: str, url: str, **arguments: Any) -> Any:
        nonlocal asked
        try:
            response = rt.http_of(delivery.provider).call(method, url, gate=check_still_allowed, **arguments)
        finally:
            asked = True
        trace.answered = True
        if "token" in arguments:  # without a token, it is not the network's API that responds
            read_back.note_date(rt, delivery.provider, response)
        return response

    def public_url(media: MediaFile) -> str:
        key, lifetime = renditions.storage_key(rt, media), public_url_lifetime(rt.settings)
        return signed_urls.media_url(rt.settings, rt.secrets, key, rt.now(), lifetime)

    return Job(
        content=content,
        options=provider.read_options(delivery.options)[0],
        account=account,
        memo=dict(delivery.memo),
        token=token,
        call=call,
        fit=lambda media, limits: renditions.fit_media(rt, delivery.id, media, limits),
        now=rt.now() - moved,
        slice_over=lambda: rt.clock.monotonic() - began >= SLICE_SECONDS,
        committed_at=parse(committed_at) - moved if committed_at else None,
        since=lambda: read_back.search_from(rt, delivery),
        unknown_before=delivery.unknown_calls > 0,
        public_url=public_url,
        seal=lambda text: rt.secrets.seal(text, *place).decode(),
        open=lambda sealed: rt.secrets.open(sealed.encode(), *place),
        times_back=delivery.progress.again,
        trace=trace,
    )


def public_url_lifetime(settings: Settings) -> timedelta:
    """Return how long a network may fetch media: until the delivery is settled."""
    return settings.publishing.give_up_after + timedelta(hours=2)


# --- what a failed call means for the post ---------------------------------------------------------------------------
#
# Exceptions describe the call, results describe the post. A network's own error table is asked first.

LOCKED_SECONDS = 10.0


def _interpret_error(rt: Runtime, delivery: Delivery, error: ProviderError, *, asked: bool) -> Result:
    """`asked`: the network answered a call of this run, rather than one that came before it (a token)."""
    match error:
        case tokens.Locked():
            return Retry(error.message, seconds=LOCKED_SECONDS)
        case NotSent():
            return Retry(error.message, error.code)
        case Throttled():
            # Under the steps' names, which every delivery of the profile shares.
            endpoints = {holds.endpoint_of(delivery.step_name), *error.steps}
            return Limited(plausible_wait(error.retry_after_seconds), endpoints, error.message, error.code)
        case AppRefused() | Rejected(reauth=False) if isinstance(delivery.phase, ConfirmingInherited) and asked:
            # An account that cannot be asked does not keep a post from being published.
            return NotFoundOnAccount(rt.clock.monotonic(), asked=False)
        case AppRefused():
            return Held(error.message, error.code)
        case AuthExpired() | Rejected(reauth=True):
            return NeedsReauth(waiting.reconnect_message(delivery.provider, error.message), error.code)
        case Rejected() if delivery.phase.reads_back:
            return _not_readable(error.message)
        case Rejected():
            return Refused(error.message, error.code, content=error.content)
        case NoAnswer() if delivery.commits_next:
            return Unknown(error.message, error.code)
        case _:
            return Retry(error.message, error.code)


def interpret_unusable(delivery: Delivery, profile: Profile) -> Result | None:
    """Return what it means that nothing can be sent for this profile. None: the profile can be used."""
    match profile.status:
        case ProfileStatus.DISCONNECTED if delivery.phase.may_be_public:
            return _not_readable("The profile was disconnected.")
        case ProfileStatus.DISCONNECTED:
            how = hints.reconnect(profile.provider)
            return Refused(
                f"The profile was disconnected. To connect the account again, {how}. Then create the post again."
            )
        case ProfileStatus.REAUTH_REQUIRED:
            return NeedsReauth(waiting.reconnect_reason(profile))
        case _:
            return None


def interpret_crash(delivery: Delivery) -> Result:
    """Return what an unexpected exception means."""
    if delivery.commits_next:
        return Unknown("socialpub failed unexpectedly during the call; its log says why")
    return Retry("socialpub failed unexpectedly; its log says why.")


def _not_sendable(delivery: Delivery, message: str) -> Result:
    """Nothing more can be sent. It cannot be found out either whether something is public."""
    return _not_readable(message) if delivery.phase.may_be_public else Refused(message)


def _not_readable(message: str) -> Undecidable:
    return Undecidable(f"It could not be read back: {message} Look at the account.")
