"""Settle a step: store what its result means for the delivery."""

import json
import random
import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from socialpub.accounts import rate_limits
from socialpub.core import logging
from socialpub.core.clock import after
from socialpub.db import appliance_state
from socialpub.db.connection import Tx
from socialpub.db.delivery import Delivery, Progress
from socialpub.db.states import ProfileStatus, State
from socialpub.db.tables import counters, delivery_rows, holds, log_entries, profile_rows, waits
from socialpub.db.tables.log_entries import AttemptOutcome
from socialpub.providers.base import Again, Done, Held, More, Published, Refused, Unknown, Wait
from socialpub.publishing.delivery import deliveries, read_back, waiting
from socialpub.publishing.delivery.deliveries import OUTCOME_UNKNOWN, Run
from socialpub.publishing.delivery.read_back import CHECK_ACCOUNT
from socialpub.publishing.delivery.step import Limited, NeedsReauth, NotFoundOnAccount, Result, Retry, Undecidable
from socialpub.publishing.posts import post_status
from socialpub.runtime import Runtime

# MERGED from publishing/settle.py: Writing down what became of a step: the complete match over every way it can en

log = logging.get_logger("socialpub.settlement")


def settle(rt: Runtime, tx: Tx, delivery: Delivery, result: Result, run: Run) -> Delivery | None:
    """Write down what became of a step. The delivery again when it goes on at once, else None."""
    row = delivery_rows.state_of(tx, delivery.id)
    if row is None or State(row.state).final:
        return None
    if (row.state, row.held_by) != (State.RUNNING, rt.process.name) and not isinstance(result, Published):
        return None  # the row was taken meanwhile; only a post that is certainly up still counts
    delivery = _copy(delivery)
    stored = Progress(**json.loads(row.progress))
    delivery.progress.stopped = stored.stopped
    # A clock that was set during the call has moved these.
    delivery.due_at, delivery.started_at, delivery.committed_at = row.due_at, row.started_at, row.committed_at
    delivery.progress.since = stored.since
    delivery.progress.deaths = 0
    committing, asked, scopes = delivery.commits_next, delivery.asks, holds.scopes_of(delivery)
    waiting.note_step(tx, delivery, row.run_at)
    if committing and isinstance(result, Done | Published | Unknown):
        waiting.keep_distance(rt, tx, delivery)
    match result:
        case Done(memo):
            _advance(delivery, memo)
            deliveries.record_attempt(tx, delivery, run, AttemptOutcome.DONE, run.message, step=-1)
            _update_holds(tx, delivery, result, run, committing, asked, scopes)
            return _go_on(rt, tx, delivery)
        case More(memo):
            delivery.memo, delivery.progress.tries = memo, 0
            deliveries.record_attempt(tx, delivery, run, AttemptOutcome.WAITING, "Goes on.")
            deliveries.requeue(rt, tx, delivery, 0)
        case Again():
            _go_back(rt, tx, delivery, result, run)
        case Wait(named, reason, memo):
            seconds = rate_limits.plausible_wait(named) or 60 * _backoff(delivery)
            delivery.memo = memo or delivery.memo
            _clear(delivery, committing)
            delivery.progress.tries = 0
            deliveries.ask_later(rt, tx, delivery, run, seconds, AttemptOutcome.WAITING, reason)
        case Limited():
            _clear(delivery, committing)
            seconds = result.seconds if result.seconds is not None else 60 * _backoff(delivery)
            until = after(tx.stamp, min(seconds, rate_limits.MAX_SECONDS))
            give_up_after = rt.settings.publishing.give_up_after
            for endpoint in result.endpoints:
                waits.begin_cooldown(tx, delivery.profile_id, endpoint, until, result.message, give_up_after)
            deliveries.ask_later(rt, tx, delivery, run, seconds, AttemptOutcome.WAITING, result.message, result.code)
        case Held(reason, code):
            _clear(delivery, committing)
            probe_at = _hold(tx, delivery, result)
            if deliveries.stopped(tx, delivery):
                return None
            deliveries.record_attempt(tx, delivery, run, AttemptOutcome.HELD, reason, code, probe_at)
            deliveries.requeue(rt, tx, delivery, 0, notify=False)
            return None
        case Retry(message, code, named):
            _clear(delivery, committing)
            seconds = 5 * _backoff(delivery) if named is None else named
            deliveries.ask_later(rt, tx, delivery, run, seconds, AttemptOutcome.RETRYING, message, code)
        case Published():
            _publish(rt, tx, delivery, result, run)
        case Refused():
            _refuse(rt, tx, delivery, result, run, committing)
        case NeedsReauth(message, code):
            _clear(delivery, committing)
            _wait_for_reconnect(rt, tx, delivery, run, message, code)
        case Unknown(message, code, memo):
            delivery.memo = memo or delivery.memo
            deliveries.record_attempt(
                tx, delivery, run, AttemptOutcome.UNKNOWN, f"{message} The account is read back.", code
            )
            read_back.begin(rt, delivery, message)
            deliveries.requeue(rt, tx, delivery, read_back.READ_BACK_AFTER_SECONDS[0])
        case NotFoundOnAccount():
            conclude_readback(rt, tx, delivery, run, result)
        case Undecidable(hint):
            deliveries.fail_unconfirmed(tx, delivery, hint, run)
    _update_holds(tx, delivery, result, run, committing, asked, scopes)
    return None


def _copy(delivery: Delivery) -> Delivery:
    """Settling may fail half-way and be done again: what the caller holds stays as it was."""
    return replace(delivery, progress=replace(delivery.progress, again=dict(delivery.progress.again)))


def _update_holds(
    tx: Tx, delivery: Delivery, result: Result, run: Run, committing: bool, asked: bool, scopes: tuple[str, ...]
) -> None:
    """What this run shows of what is held: of the app only a commit that was answered, of questions any answer, of a
    step that it went well. A run that shows nothing gives its turn as the probe back."""
    if not holds.any_hold(tx):
        return
    if committing and (isinstance(result, Done | Published) or (_is_refusal(result) and run.answered)):
        _release(tx, delivery.provider, holds.PUBLISHING)
    told = isinstance(result, Done | More | Again | Wait | NotFoundOnAccount | Published)
    if asked and (told or (run.answered and isinstance(result, Refused | Undecidable))):
        _release(tx, delivery.provider, holds.QUESTIONS)
    if isinstance(result, Done | More) and not asked:
        _release(tx, delivery.provider, scopes[-1])
    match result:
        case Published() | Refused() | NeedsReauth() | Undecidable():
            holds.release_probe(tx, delivery.provider, scopes, tx.stamp)
        case More() | Again() | Wait() | NotFoundOnAccount():
            holds.release_probe(tx, delivery.provider, scopes, max(tx.stamp, delivery.run_at))


def _is_refusal(result: Result) -> bool:
    return isinstance(result, Refused) and not result.reauth


def _hold(tx: Tx, delivery: Delivery, held: Held) -> str:
    publishing, *step = holds.scopes_of(delivery)
    scope = step[0] if held.this_step and step else publishing
    if not holds.is_held(tx, delivery.provider, scope):
        # Once: what is held meets the same answer at every probe.
        message = f"the network refuses this app; {holds.what(scope)}"
        about = {"provider": delivery.provider, "reason": held.reason, "code": held.code}
        tx.after_commit(partial(log.warning, message, **about))
    return holds.begin(tx, delivery.provider, scope, held.reason, held.code)


def _release(tx: Tx, provider: str, scope: str) -> None:
    if holds.release(tx, provider, scope):
        message = f"the network accepts this app again; {holds.released(scope)}"
        tx.after_commit(partial(log.info, message, provider=provider))


def _advance(delivery: Delivery, memo: Mapping[str, Any]) -> None:
    delivery.memo = dict(memo) or delivery.memo
    # What was read back and has arrived goes on after the commit, wherever the plan stood.
    delivery.step = (delivery.commit_step if delivery.progress.reading_back else delivery.step) + 1
    delivery.progress.tries = 0
    # Read back and found to have arrived: what the following steps see decides.
    delivery.progress.reading_back = delivery.progress.confirming = False
    if not delivery.progress.restored:
        delivery.progress.unknown = None


def _go_on(rt: Runtime, tx: Tx, delivery: Delivery) -> Delivery | None:
    """The next step at once, unless something speaks against it."""
    if deliveries.stopped(tx, delivery):
        return None
    waits = (
        appliance_state.paused_at(tx) or waiting.find_cooldown(tx, delivery) or waiting.equal_comes_first(tx, delivery)
    )
    if waits or rt.stopping.is_set():
        deliveries.requeue(rt, tx, delivery, 0)
        return None
    delivery.run_at = tx.stamp
    read_back.confirm_first(rt, delivery)
    deliveries.announce(rt, tx, delivery)
    delivery_rows.store(tx, delivery)
    return delivery


def _go_back(rt: Runtime, tx: Tx, delivery: Delivery, again: Again, run: Run) -> None:
    if delivery.progress.restored:
        hint = f"{again.reason.rstrip('.')}, which the original may have done. {CHECK_ACCOUNT}"
        deliveries.fail_unconfirmed(tx, delivery, hint, run)
        return
    deliveries.record_attempt(
        tx, delivery, run, AttemptOutcome.RETRYING, again.reason, next_at=after(tx.stamp, again.seconds)
    )
    delivery.progress.again[again.reason] = delivery.progress.again.get(again.reason, 0) + 1
    delivery.memo = again.memo
    if delivery.past_commit_step:
        # The network's own verdict: what the commit began will never be a post.
        progress = delivery.progress
        progress.commits, progress.unknown, progress.since, progress.dated_since = 0, None, None, None
    delivery.step = [name for name, _ in delivery.plan or ()].index(again.step)
    if not delivery.progress.commits:
        delivery.committed_at = None
    if not deliveries.stopped(tx, delivery):
        deliveries.requeue(rt, tx, delivery, again.seconds)


def _publish(rt: Runtime, tx: Tx, delivery: Delivery, post: Published, run: Run) -> None:
    try:
        delivery_rows.update(
            tx,
            delivery.id,
            state=State.PUBLISHED,
            published_at=tx.stamp,
            provider_post_id=post.post_id,
            url=post.url,
            owner=None,
        )
    except sqlite3.IntegrityError:
        hint = f"The network answered with {post.post_id}, which is another post's. Look at the account."
        deliveries.fail(tx, delivery, State.UNCONFIRMED, OUTCOME_UNKNOWN + hint, run, AttemptOutcome.UNKNOWN)
        return
    deliveries.record_attempt(
        tx, delivery, run, AttemptOutcome.PUBLISHED, " ".join(delivery.memo.get("notes", ())) or None
    )
    profile_rows.count_post(tx, delivery.profile_id)
    counters.count_sending_delay(tx, delivery)
    log_entries.record(tx, delivery.id, "published")
    post_status.settle_if_resolved(tx, delivery.post_id)


def _refuse(rt: Runtime, tx: Tx, delivery: Delivery, refused: Refused, run: Run, committing: bool) -> None:
    if refused.rest_seconds:
        until = after(tx.stamp, min(refused.rest_seconds, rate_limits.MAX_SECONDS))
        give_up_after = rt.settings.publishing.give_up_after
        waits.begin_cooldown(tx, delivery.profile_id, waits.ANY_ENDPOINT, until, refused.message, give_up_after)
    if refused.too_long:
        profile_rows.expect_account_data(tx, delivery.profile_id)
    # Of a copy's delivery that was not past its commit yet, the original may have begun another task since.
    of_another = delivery.progress.restored and delivery.progress.unknown is not None
    if refused.reauth and not refused.verdict:
        _clear(delivery, committing)
        _wait_for_reconnect(rt, tx, delivery, run, refused.message, refused.code)
        return
    if refused.reauth:
        profile_rows.require_reauth(tx, delivery.profile_id, refused.message)
    end = partial(deliveries.fail, tx, delivery, State.FAILED, refused.message, run, content=refused.content)
    if refused.verdict and not of_another:
        end(AttemptOutcome.REFUSED, refused.code)
    elif delivery.may_be_public and not delivery.asks:
        # The call before this one may have arrived, and this one perhaps was refused because of that.
        deliveries.close(rt, tx, delivery, run, refused.message, refused.code, AttemptOutcome.REFUSED)
    elif delivery.may_be_public:
        # A refused question is no verdict on the post.
        deliveries.fail_unconfirmed(tx, delivery, refused.message, run, AttemptOutcome.REFUSED, refused.code)
    else:
        end(AttemptOutcome.REFUSED, refused.code)


def _wait_for_reconnect(rt: Runtime, tx: Tx, delivery: Delivery, run: Run, message: str, code: str | None) -> None:
    """The account must be connected again, unless it was connected or disconnected while the call was on its way."""
    if deliveries.stopped(tx, delivery):
        return
    profile = profile_rows.find(tx, delivery.profile_id)
    if profile is not None and profile.status is ProfileStatus.DISCONNECTED:
        ended = "The profile was disconnected meanwhile."
        deliveries.ask_later(rt, tx, delivery, run, 1.0, AttemptOutcome.RETRYING, ended)
        return
    if profile is not None and run.grant is not None and profile.access_token == run.grant:
        profile_rows.require_reauth(tx, delivery.profile_id, message)
    elif profile is not None and profile.status is ProfileStatus.ACTIVE:
        again = "The account was connected again meanwhile."
        deliveries.ask_later(rt, tx, delivery, run, 1.0, AttemptOutcome.RETRYING, again)
        return
    deliveries.wait_for_reconnect(rt, tx, delivery, run, message, code)


def _clear(delivery: Delivery, committing: bool) -> None:
    """The commit was refused for now or never left: it certainly did not happen. An earlier one may have."""
    if committing and not delivery.progress.commits:
        delivery.committed_at = None


def _backoff(delivery: Delivery) -> float:
    """1, 2, 4 … 180, with up to a quarter of jitter on top, never below."""
    delivery.progress.tries += 1
    return float(min(2 ** (delivery.progress.tries - 1), 180)) * (1 + random.random() / 4)


# MERGED from publishing/looks.py: What the looks at an account come to: only an answered, readable list counts, an

MAX_COMMITS = 2
"""The commit and, when the account shows for certain that it did not happen, one more."""

NOT_SENT_AFTER_RESTORE = (
    "Not sent: it was due before this restored appliance was resumed, and the account does not show it. "
    "To publish it, create the post again."
)
NOT_SENT_ELSEWHERE = "The account does not show the post: no other installation sent it."
NOT_KNOWN_ELSEWHERE = "The account cannot be asked whether another installation sent it: the post is sent."
SOMETHING_SIMILAR = (
    "The account has something of the same kind from that time whose words differ, and it cannot be told whether that "
    f"is this post. {CHECK_ACCOUNT}"
)


def conclude_readback(rt: Runtime, tx: Tx, delivery: Delivery, run: Run, missing: NotFoundOnAccount) -> None:
    """The account does not show the post: look again later, or conclude from it."""
    progress = delivery.progress
    read_back.note_readback(rt, delivery, missing.seen_at)
    if progress.confirming:
        progress.confirming = False
        _go_ahead(rt, tx, delivery, run, missing)
    elif (left := read_back.seconds_left(rt, delivery)) > 0:
        seconds = max(min(read_back.next_pause(delivery), left), 1.0)
        message = "The account does not show the post yet; looking again."
        deliveries.ask_later(rt, tx, delivery, run, seconds, AttemptOutcome.WAITING, message)
    elif missing.similar:
        deliveries.fail_unconfirmed(tx, delivery, SOMETHING_SIMILAR, run)
    elif progress.restored and not missing.whole:
        hint = f"The upload in the backup never ended. The original may have begun another one. {CHECK_ACCOUNT}"
        deliveries.fail_unconfirmed(tx, delivery, hint, run)
    elif progress.restored:
        deliveries.fail(tx, delivery, State.FAILED, progress.closing or NOT_SENT_AFTER_RESTORE, run)
    elif progress.stopped and progress.closing is None:
        deliveries.close(rt, tx, delivery, run, deliveries.STOPPED)
    elif progress.closing is not None and not missing.whole:
        hint = f"{progress.closing} The upload that was begun may still become a post. {CHECK_ACCOUNT}"
        deliveries.fail_unconfirmed(tx, delivery, hint, run)
    elif progress.closing is not None:
        deliveries.fail(tx, delivery, State.FAILED, progress.closing, run)
    elif progress.commits >= MAX_COMMITS:
        hint = f"The account does not show it even after the second call. {CHECK_ACCOUNT}"
        deliveries.fail_unconfirmed(tx, delivery, hint, run)
    elif rt.settings.publishing.resend_after is None:
        hint = f'The account does not show it, and publishing.resend_after is "never". {CHECK_ACCOUNT}'
        deliveries.fail_unconfirmed(tx, delivery, hint, run)
    else:
        _send_again(rt, tx, delivery, run, "The account does not have the post; it is sent once more.")


def _go_ahead(rt: Runtime, tx: Tx, delivery: Delivery, run: Run, missing: NotFoundOnAccount) -> None:
    """The look that must precede a call has shown nothing."""
    progress = delivery.progress
    if missing.similar:
        deliveries.fail_unconfirmed(tx, delivery, SOMETHING_SIMILAR, run)
    elif progress.look_first:
        progress.look_first, progress.since, progress.earlier = False, None, []
        _send_again(rt, tx, delivery, run, NOT_SENT_ELSEWHERE if missing.asked else NOT_KNOWN_ELSEWHERE)
    else:
        _send_again(rt, tx, delivery, run, "The account still does not have the post; it is sent once more.")


def _send_again(rt: Runtime, tx: Tx, delivery: Delivery, run: Run, message: str) -> None:
    deliveries.record_attempt(tx, delivery, run, AttemptOutcome.DONE, message)
    delivery.progress.reading_back = False
    deliveries.requeue(rt, tx, delivery, 0)
