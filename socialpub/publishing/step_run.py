"""One run of one step: the conversation with the network. No transaction is open here."""

from dataclasses import replace

from socialpub.accounts import profiles, renewal
from socialpub.core import held_secrets, logging
from socialpub.core.errors import OperatorError, Unavailable
from socialpub.db import delivery_rows
from socialpub.db.models import Delivery, Profile
from socialpub.providers.errors import AuthExpired, ProviderError
from socialpub.providers.job import CallTrace, Job, Unfit, Withdrawn
from socialpub.providers.outcomes import Again, CannotTell, Done, Look, Published, Refused
from socialpub.publishing import call_results, post_content, read_back, step_job
from socialpub.publishing.results import Missing, Result, Retry, Undecidable
from socialpub.runtime import Runtime

log = logging.get_logger("socialpub.publisher")


def run(rt: Runtime, delivery: Delivery, trace: CallTrace) -> Result:
    """Run the next step, or look at the account when the outcome of the commit is unknown. `trace` takes what the calls
    showed. Whatever a network does becomes a result, and whatever it quotes, none of the account's tokens is in it."""
    result = held_secrets.masked(_run(rt, delivery, trace))
    trace.code, trace.message, trace.request_id = held_secrets.masked((trace.code, trace.message, trace.request_id))
    return result


def _run(rt: Runtime, delivery: Delivery, trace: CallTrace) -> Result:
    profile = _profile(rt, delivery)
    unusable = call_results.of_unusable(delivery, profile)
    if unusable is not None:
        return unusable
    try:
        token = renewal.fresh(rt, profile.id)
        try:
            return _converse(rt, delivery, token, trace)
        except AuthExpired:
            return _converse(rt, delivery, renewal.refresh(rt, profile.id, spent=token), trace)
    except ProviderError as error:
        trace.request_id = error.request_id or trace.request_id
        return call_results.of_error(rt, delivery, error, asked=trace.answered)
    except Withdrawn as withdrawn:
        return call_results.of_withdrawal(delivery, withdrawn)
    except step_job.LookDue:
        return Retry("The account is looked at again first.", seconds=0.0)
    except Unfit as unfit:
        return Refused(str(unfit), content=True)
    except FileNotFoundError as missing:
        name = _name_of(rt, delivery, missing)
        return Refused(f"A media file is missing in socialpub's storage: {name}.", content=True)
    except Unavailable as error:
        return Retry(error.detail)
    except OperatorError as error:
        return call_results.not_sendable(delivery, f"{error.message} {error.hint or ''}".strip())
    except Exception:
        log.error("a step failed unexpectedly", exc_info=True, step=delivery.step_name)
        return call_results.of_own_failure(delivery)


def _converse(rt: Runtime, delivery: Delivery, token: str, trace: CallTrace) -> Result:
    profile = _profile(rt, delivery)
    trace.grant = profile.access_token
    provider = rt.providers[delivery.provider]
    content = post_content.of_post(rt, rt.reader, delivery.post_id)
    if delivery.step_kind == "prepare" and not delivery.progress.reading_back:
        for media in content.media:
            media.path.stat()
    job = step_job.build(rt, delivery, provider, post_content.account_of(profile), content, token, trace)
    if read_back.is_look_due(rt, delivery):
        raise step_job.LookDue
    if not delivery.progress.reading_back:
        outcome = provider.run(delivery.step_name, job)
        return outcome.after(job.times(outcome.reason)) if isinstance(outcome, Again) else outcome
    match provider.recover(job):
        case CannotTell(hint):
            return Missing(rt.clock.monotonic(), asked=False) if delivery.progress.look_first else Undecidable(hint)
        case Done() as arrived:
            return arrived
        case Look() as look:
            found = _found(rt, delivery, look)
            return _found_earlier(rt, delivery, job) or found if isinstance(found, Missing) else found


def _found_earlier(rt: Runtime, delivery: Delivery, job: Job) -> Undecidable | Missing | None:
    """Whether the account shows, or may show, what an edit has replaced: another installation may have published it
    before."""
    provider = rt.providers[delivery.provider]
    for content, given in post_content.earlier(rt, delivery):
        look = provider.recover(replace(job, content=content, options=provider.read_options(given)[0]))
        found = _found(rt, delivery, look) if isinstance(look, Look) else None
        if isinstance(found, Published):
            return Undecidable(
                f"The account shows the text from before the last edit ({found.url or found.post_id}). "
                "Delete that post first if the new text should be published."
            )
        if found is not None and found.similar:
            return found
    return None


def _found(rt: Runtime, delivery: Delivery, look: Look) -> Published | Missing:
    """The candidate that is this delivery's, or that it is missing. What another delivery made is not ours; what does
    not tell its words is nobody's while another delivery's outcome is unknown, too."""
    reader = rt.reader
    seen_at, doubt = rt.clock.monotonic(), False
    for post in look.candidates:
        of_another = delivery_rows.is_outcome_of_another(reader, delivery, post.post_id)
        if post.post_id in look.vague and (of_another or delivery_rows.others_past_commit(reader, delivery)):
            doubt = True
        elif not of_another:
            return post
    # An owner who sends it after a restore wants it beside posts with other words. One without words may be this post.
    similar = () if delivery.progress.look_first else look.similar
    others = (delivery_rows.is_outcome_of_another(reader, delivery, post_id) for post_id in similar)
    return Missing(seen_at, look.whole, doubt or not all(others))


def _profile(rt: Runtime, delivery: Delivery) -> Profile:
    profile = profiles.find(rt.reader, delivery.profile_id)
    assert profile is not None
    return profile


def _name_of(rt: Runtime, delivery: Delivery, missing: FileNotFoundError) -> str:
    for media in post_content.of_post(rt, rt.reader, delivery.post_id).media:
        if str(media.path) == str(missing.filename):
            return f"{media.file_name} (media item {media.position + 1})"
    return "one of its files"
