"""Settle a run: store what its result means for the delivery, in one short transaction.

The row is the only truth. A worker may die between any two lines of the engine, and the next worker must know what
definitely happened. So a commit (the call that makes something public) is announced in the row before it is sent. Its
outcome is stored, or read back from the account. It is never guessed, and never repeated blindly.
"""

import random
import sqlite3
from dataclasses import dataclass, field, replace
from functools import partial

from socialpub.core import logging
from socialpub.core.clock import after, parse, stamp
from socialpub.core.post_summary import OUTCOME_UNKNOWN
from socialpub.db import states
from socialpub.db.connection import Database
from socialpub.db.delivery import Delivery, Progress
from socialpub.db.models import DeliveryRow
from socialpub.db.states import ProfileStatus, State
from socialpub.db.tables import counters, delivery_rows, log_entries, post_rows, profile_rows, waits
from socialpub.db.tables.log_entries import Attempt, AttemptOutcome
from socialpub.db.tables.waits import REASONS, WaitReason
from socialpub.providers.base import (
    Again,
    CallTrace,
    Done,
    Held,
    Memo,
    More,
    Published,
    Refused,
    Unknown,
    Wait,
)
from socialpub.providers.responses import MAX_WAIT_SECONDS, plausible_wait
from socialpub.publishing.delivery import read_back, transitions, waiting
from socialpub.publishing.delivery.read_back import CHECK_ACCOUNT, STOPPED, NotFoundOnAccount
from socialpub.publishing.delivery.results import Limited, NeedsReauth, Result, Retry, Undecidable
from socialpub.publishing.delivery.transitions import PhaseEvent
from socialpub.publishing.posts import replies
from socialpub.runtime import Runtime

LONG_STEP_SECONDS = 5.0
"""A longer step delays the other posts of its profile noticeably, so it is recorded as a wait."""

log = logging.get_logger(__name__)


def settle(rt: Runtime, tx: Database, ran: Delivery, result: Result, trace: CallTrace) -> Delivery | None:
    """Store the result of a run. Return the delivery if its next step runs at once.

    A settlement can fail and run again, so it does not change `ran`.
    """
    row = tx.get(DeliveryRow, ran.id)
    if row is None or State(row.state).final:
        return None
    if (row.state, row.owner) != (State.RUNNING, rt.process.name) and not isinstance(result, Published):
        return None  # another process claimed the row; only a published post still counts
    if isinstance(result, Refused) and result.parent_missing:
        result = replies.wait_until_visible(rt, tx, ran, result)
    settlement = Settlement(rt, tx, _as_stored(ran, row), trace)
    if after(row.run_at, LONG_STEP_SECONDS) <= tx.stamp:
        waits.record_span(tx, WaitReason.STEP, ran.profile_id, waits.PAST, row.run_at, tx.stamp)
    if rt.settings.publishing.min_gap and ran.commits_next and isinstance(result, Done | Published | Unknown):
        waiting.begin_gap(rt, tx, ran, is_unknown=isinstance(result, Unknown))
    settlement.store(result)
    if waits.any_hold(tx):
        settlement.update_holds(ran, result)
    return settlement.run_next_step() if isinstance(result, Done) else None


def _as_stored(ran: Delivery, row: DeliveryRow) -> Delivery:
    """Return a copy with the changes during the call: a stop, and times moved by a set clock."""
    own, stored = ran.progress, Progress.from_json(row.progress)
    phase = stored.phase if stored.phase.name is own.phase.name else own.phase
    return replace(
        ran,
        due_at=row.due_at,
        started_at=row.started_at,
        committed_at=row.committed_at,
        progress=replace(
            own, phase=phase, stopped=stored.stopped, deaths=0, again=dict(own.again), refusals=dict(own.refusals)
        ),
    )


@dataclass(slots=True)
class Settlement:
    """The changes to one delivery in one write, after a run or instead of a run."""

    rt: Runtime
    tx: Database
    delivery: Delivery
    trace: CallTrace = field(default_factory=CallTrace)
    """The result of the run. Empty if no step ran."""

    def store(self, result: Result) -> None:
        delivery = self.delivery
        if isinstance(result, Wait | Limited | Held | Retry | NeedsReauth):
            self._clear_commit()
        match result:
            case Done(memo):
                done = self._advance(memo)
                self.record_attempt(AttemptOutcome.DONE, self.trace.message, step_name=done)
            case More(memo):
                delivery.memo, delivery.progress.tries = memo, 0
                self.record_attempt(AttemptOutcome.WAITING, "The step continues.")
                self.requeue()
            case Again():
                self._go_back(result)
            case Wait(named, reason, memo):
                seconds = plausible_wait(named) or 60 * self._backoff()
                delivery.memo, delivery.progress.tries = memo or delivery.memo, 0
                self.ask_later(seconds, AttemptOutcome.WAITING, reason)
            case Limited(named, endpoints, message, code):
                seconds = named if named is not None else 60 * self._backoff()
                for endpoint in endpoints:
                    self._limit(endpoint, seconds, message)
                self.ask_later(seconds, AttemptOutcome.WAITING, message, code)
            case Held(reason, code):
                probe_at = self._hold(result)
                if not self.ended_by_stop():
                    self.record_attempt(AttemptOutcome.HELD, reason, code, probe_at)
                    self.requeue(notify=False)
            case Retry(message, code, named):
                seconds = 5 * self._backoff() if named is None else named
                self.ask_later(seconds, AttemptOutcome.RETRYING, message, code)
            case Published():
                self._publish(result)
            case Refused():
                self._refuse(result)
            case NeedsReauth(message, code):
                self._require_reauth(message, code)
            case Unknown(message, code, kept):
                delivery.memo = kept or delivery.memo
                self._note_unknown(message, code)
            case NotFoundOnAccount():
                self._conclude(result)
            case Undecidable(hint):
                self.fail_unconfirmed(hint)

    # --- the next run ---

    def run_next_step(self) -> Delivery | None:
        rt, tx, delivery = self.rt, self.tx, self.delivery
        if self.ended_by_stop():
            return None
        self.confirm_first()
        delivery.run_at = tx.stamp
        delivery_rows.store(tx, delivery)
        # A probe that the network answered goes on.
        present = waits.list_current(tx, delivery.id, tx.stamp)
        if rt.stopping.is_set() or any(not REASONS[wait.reason].is_probed for wait in present):
            self.requeue()
            return None
        if delivery.commits_next:
            self.announce()
            delivery_rows.store(tx, delivery)
        return delivery

    def confirm_first(self) -> bool:
        """Return whether a read-back must precede the second call. If so, the read-back runs next."""
        if not isinstance(self.delivery.phase, states.CommittingAgain) or not read_back.is_due(self.rt, self.delivery):
            return False
        transitions.move(self.delivery, PhaseEvent.CHECK_DUE)
        return True

    def announce(self) -> None:
        """Announce a commit before it is sent. A search of the account starts at the first commit."""
        rt, tx, delivery = self.rt, self.tx, self.delivery
        if not delivery.unknown_calls:
            delivery.committed_at = tx.stamp
        if isinstance(delivery.phase, states.Committing):
            now = rt.clock.monotonic()
            at = rt.engine.network_now(delivery.provider, now)
            delivery.progress.phase = states.Committing(dated_since=None if at is None else stamp(at))
            tx.call_after_commit(rt.engine.note_announcement, delivery.id, now)

    def requeue(self, seconds: float = 0, *, notify: bool = True) -> None:
        """Release the delivery until its next run."""
        delivery, tx = self.delivery, self.tx
        delivery.state, delivery.held_by = State.QUEUED, None
        delivery.run_at = after(tx.stamp, seconds) if seconds else tx.stamp
        delivery_rows.store(tx, delivery)
        if notify and not seconds:
            tx.call_after_commit(self.rt.wakeup.notify, delivery.provider, delivery.profile_id)

    def ask_later(self, seconds: float, outcome: AttemptOutcome, message: str, code: str | None = None) -> None:
        """Run again in `seconds`, at most a day. End the delivery if that is after its deadline."""
        until = after(self.tx.stamp, seconds)
        if self.ended_by_stop():
            return
        if parse(until) > waiting.give_up_at(self.rt, self.tx, self.delivery):
            self.give_up(waiting.too_long(until, message), code)
        else:
            seconds = min(seconds, MAX_WAIT_SECONDS)
            self.record_attempt(outcome, message, code, after(self.tx.stamp, seconds))
            self.requeue(seconds)

    def record_attempt(
        self,
        outcome: AttemptOutcome,
        message: str | None = None,
        code: str | None = None,
        next_at: str | None = None,
        *,
        step_name: str | None = None,
    ) -> None:
        step, trace = step_name or self.delivery.step_name, self.trace
        started_at = trace.started_at or self.tx.stamp
        attempt = Attempt(step, started_at, outcome, message, code or trace.code, trace.request_id, next_at)
        log_entries.record_attempt(self.tx, self.delivery, attempt)
        if trace.refused and outcome is AttemptOutcome.RETRYING:
            self.delivery.progress.count_refusal(step, attempt.code, self.tx.stamp)

    def _clear_commit(self) -> None:
        """Clear the announcement of a commit that definitely did not happen."""
        if self.delivery.commits_next and not self.delivery.unknown_calls:
            self.delivery.committed_at = None

    def _backoff(self) -> float:
        """Return 1, 2, 4 … 180 seconds, plus up to 25% jitter."""
        progress = self.delivery.progress
        progress.tries += 1
        return float(min(2 ** (progress.tries - 1), 180)) * (1 + random.random() / 4)

    # --- another step ---

    def _advance(self, memo: Memo) -> str:
        """Continue after the finished step, or after the commit that a read-back found. Return that step's name."""
        delivery = self.delivery
        accepted = delivery.phase.reads_back or delivery.commits_next
        done = delivery.commit_step if delivery.phase.reads_back else delivery.step
        delivery.memo = dict(memo) or delivery.memo
        delivery.step, delivery.progress.tries = done + 1, 0
        if not accepted:
            transitions.enter_step(delivery)
        elif delivery.phase.restored:
            transitions.move(delivery, PhaseEvent.ACCEPTED, why=delivery.phase.why or read_back.MAYBE_SENT)
        else:
            transitions.move(delivery, PhaseEvent.ACCEPTED)
        return (delivery.plan or [("start", "")])[done][0]

    def _go_back(self, again: Again) -> None:
        delivery, phase = self.delivery, self.delivery.phase
        if phase.restored:
            self.fail_unconfirmed(
                f"{again.reason.rstrip('.')}. The original installation may have repeated the step. {CHECK_ACCOUNT}"
            )
            return
        if isinstance(phase, states.Processing) and phase.message:  # no further call is made
            self.fail(phase.message)
            return
        next_at = after(self.tx.stamp, again.seconds)
        message = " ".join(filter(None, (again.reason, self.trace.message)))
        self.record_attempt(AttemptOutcome.RETRYING, message, next_at=next_at)
        times = delivery.progress.again
        times[again.cause] = times.get(again.cause, 0) + 1
        delivery.memo = again.memo
        if isinstance(phase, states.Processing):
            transitions.move(delivery, PhaseEvent.VOIDED)
        delivery.step = [name for name, _ in delivery.plan or ()].index(again.step)
        if isinstance(phase, states.Committing | states.CommittingAgain) and not delivery.commits_next:
            transitions.move(delivery, PhaseEvent.WENT_BACK)
        transitions.enter_step(delivery)
        if not delivery.unknown_calls:
            delivery.committed_at = None
        if not self.ended_by_stop():
            self.requeue(again.seconds)

    def _note_unknown(self, message: str, code: str | None) -> None:
        """Read back, or repeat a repeatable call: at once after the first call, and then with backoff."""
        delivery, step_name, is_first = self.delivery, self.delivery.step_name, not self.delivery.unknown_calls
        message = f"{message} {read_back.begin(self.rt, self.tx, delivery, message)}"
        if delivery.is_repeatable:
            self.ask_later(0.0 if is_first else self._backoff(), AttemptOutcome.UNKNOWN, message, code)
        else:
            self.record_attempt(AttemptOutcome.UNKNOWN, message, code, step_name=step_name)
            self.requeue(read_back.READ_BACK_AFTER_SECONDS[0])

    def _conclude(self, found: NotFoundOnAccount) -> None:
        """Read back again later, or conclude the round."""
        rt, delivery = self.rt, self.delivery
        read_back.count_readback(rt, self.tx, delivery, found.seen_at)
        seconds = read_back.seconds_until_next(rt, delivery)
        if seconds is not None:
            self.ask_later(seconds, AttemptOutcome.WAITING, "The account does not show the post yet.")
            return
        event, message = read_back.conclude(rt, delivery, found)
        match event:
            case PhaseEvent.ABSENT | PhaseEvent.UNCALLED:
                self.record_attempt(AttemptOutcome.DONE, message)
                transitions.move(delivery, event)
                transitions.enter_step(delivery)
                self.requeue()
            case PhaseEvent.CLOSED:
                self.close(message)
            case PhaseEvent.FAILED:
                self.fail(message)
            case _:
                self.fail_unconfirmed(message)

    # --- the end ---

    def _publish(self, post: Published) -> None:
        tx, delivery = self.tx, self.delivery
        transitions.move(delivery, PhaseEvent.PUBLISHED)
        try:
            tx.update(
                DeliveryRow,
                delivery.id,
                state=State.PUBLISHED,
                published_at=tx.stamp,
                provider_post_id=post.post_id,
                url=post.url,
                owner=None,
            )
        except sqlite3.IntegrityError:
            hint = f"The network returned the id {post.post_id}, which belongs to another post. Look at the account."
            self.fail(OUTCOME_UNKNOWN + hint, AttemptOutcome.UNKNOWN, state=State.UNCONFIRMED)
            return
        self.record_attempt(AttemptOutcome.PUBLISHED, " ".join(delivery.memo.get("notes", ())) or None)
        profile_rows.count_post(tx, delivery.profile_id)
        counters.count_sending_delay(tx, delivery)
        log_entries.record(tx, "published", delivery.id)
        post_rows.settle_if_resolved(tx, delivery.post_id)
        self._end(published=True)

    def _refuse(self, refused: Refused) -> None:
        tx, delivery, phase, message = self.tx, self.delivery, self.delivery.phase, refused.message
        if refused.rest_seconds:
            self._limit(waits.ALL_CALLS, refused.rest_seconds, message)
        if refused.too_long:
            profile_rows.update(tx, delivery.profile_id, account_read_at=None)
        if refused.reauth and not refused.verdict:
            self._clear_commit()
            self._require_reauth(message, refused.code)
            return
        if refused.reauth:
            profile_rows.require_reauth(tx, delivery.profile_id, message)
        # The original installation may have started another task since the backup.
        of_another = phase.restored and not phase.is_uncalled and bool(phase.why)
        if (refused.verdict and not of_another) or not phase.may_be_public:
            self.fail(message, code=refused.code, content=refused.content)
        elif delivery.asks:
            # A refused query does not show whether the post was published.
            self.fail_unconfirmed(message, AttemptOutcome.REFUSED, refused.code)
        else:
            # An earlier call may have arrived, and may have caused this refusal.
            self.close(message, refused.code, AttemptOutcome.REFUSED)

    def ended_by_stop(self) -> bool:
        """End a stopped delivery if the post was definitely not published. Return whether the delivery ended."""
        delivery = self.delivery
        if not delivery.progress.stopped or delivery.past_commit or delivery.phase.restored:
            return False
        Settlement(self.rt, self.tx, delivery).fail(STOPPED)
        return True

    def give_up(self, why: str, code: str | None = None) -> None:
        """End a delivery whose deadline is over."""
        delivery, may_be_public = self.delivery, self.delivery.phase.may_be_public
        if may_be_public and (delivery.phase.is_uncalled or not delivery.asks):
            not_sent = "Not sent again" if delivery.unknown_calls else "Not sent"
            self.close(f"{not_sent}: socialpub {why}. The account does not show the post.", code)
        elif may_be_public or delivery.past_commit:
            self.fail_unconfirmed(f"socialpub {why}.", code=code)
        else:
            self.fail(f"Not sent: socialpub {why}.", code=code)

    def close(self, message: str, code: str | None = None, outcome: AttemptOutcome = AttemptOutcome.UNKNOWN) -> None:
        """Stop calling the network, and end the delivery after one more round of read-backs."""
        delivery = self.delivery
        self.record_attempt(outcome, f"{message} The account is read back before the delivery fails.", code)
        if delivery.phase.is_uncalled:
            post_rows.begin(self.tx, delivery.post_id)
        read_back.close(self.rt, self.tx, delivery, PhaseEvent.CLOSED, message=message)
        self.requeue(read_back.READ_BACK_AFTER_SECONDS[0])

    def fail(
        self,
        message: str,
        outcome: AttemptOutcome = AttemptOutcome.REFUSED,
        code: str | None = None,
        *,
        content: bool = False,
        state: State = State.FAILED,
    ) -> None:
        """End a delivery. `content`: the post itself was refused."""
        tx, delivery = self.tx, self.delivery
        transitions.move(delivery, PhaseEvent[state.name])
        tx.update(
            DeliveryRow,
            delivery.id,
            state=state,
            failed_at=tx.stamp,
            error_message=message,
            content_refused=content,
            owner=None,
            started_at=delivery.started_at,
            progress=delivery_rows.as_json(delivery.progress.as_dict()),
        )
        self.record_attempt(outcome, message, code)
        log_entries.record(tx, "failed", delivery.id)
        post_rows.begin(tx, delivery.post_id)
        post_rows.settle_if_resolved(tx, delivery.post_id)
        self._end()

    def _end(self, *, published: bool = False) -> None:
        """Let the deliveries go on that waited for the end of this delivery."""
        tx, delivery = self.tx, self.delivery
        if not published:  # a published post has its approval
            waits.forget(tx, delivery.id)
        if delivery.past_commit:
            delivery_rows.wake_equal(tx, delivery)
        if delivery_rows.wake_replies(tx, delivery.id, published=published):  # a reply has the profile of its parent
            tx.call_after_commit(self.rt.wakeup.notify, delivery.provider, delivery.profile_id)

    def fail_unconfirmed(
        self, hint: str, outcome: AttemptOutcome = AttemptOutcome.UNKNOWN, code: str | None = None
    ) -> None:
        """End a delivery whose post may be public. `hint` is the action for the owner."""
        phase = self.delivery.phase
        default = read_back.MAYBE_SENT if phase.is_uncalled else "the result of the call is unknown"
        why = (phase.why or default).rstrip(".")
        self.fail(f"{OUTCOME_UNKNOWN}{why}. {hint}", outcome, code, state=State.UNCONFIRMED)

    # --- the wait for a reconnection ---

    def _require_reauth(self, message: str, code: str | None) -> None:
        """Wait for a reconnection, unless the account was connected or disconnected during the call."""
        tx, trace = self.tx, self.trace
        if self.ended_by_stop():
            return
        profile = profile_rows.find(tx, self.delivery.profile_id)
        if profile is not None and profile.status == ProfileStatus.DISCONNECTED:
            self.ask_later(1.0, AttemptOutcome.RETRYING, "The profile was disconnected during the call.")
            return
        if profile is not None and trace.grant is not None and profile.access_token == trace.grant:
            profile_rows.require_reauth(tx, profile.id, message)
        elif profile is not None and profile.status == ProfileStatus.ACTIVE:
            self.ask_later(1.0, AttemptOutcome.RETRYING, "The account was connected again during the call.")
            return
        if not self.ended_unconnected(message, code):
            self.record_attempt(AttemptOutcome.HELD, message, code)
            self.requeue(notify=False)

    def ended_unconnected(self, message: str, code: str | None = None) -> bool:
        """End a delivery that cannot wait for a reconnection any longer (contract 4). Return whether it ended."""
        tx, delivery = self.tx, self.delivery
        if delivery.progress.stopped:
            hint = f"The owner stopped the post while the account could not be read. {message} Look at the account."
            self.fail_unconfirmed(hint, code=code)
        elif waiting.start_deadline(self.rt, tx, delivery) <= tx.now:
            self.end_unconnected(message, code)
        else:
            return False
        return True

    def end_unconnected(self, message: str, code: str | None = None) -> None:
        """End a delivery whose account was connected too late."""
        hours = waiting.format_hours(self.rt.settings.publishing.max_lateness)
        late = f"It was not connected within {hours} of the post's time."
        if self.delivery.phase.may_be_public:
            self.fail_unconfirmed(f"{message} {late} Look at the account.", code=code)
        else:
            text = f"Not sent: {message[0].lower()}{message[1:]} {late} Connect it, then create the post again."
            self.fail(text, code=code)

    # --- waits of the network ---

    def _limit(self, calls: str, seconds: float, message: str) -> None:
        until = after(self.tx.stamp, min(seconds, MAX_WAIT_SECONDS))
        waits.begin(self.tx, WaitReason.NETWORK, self.delivery.profile_id, calls, until, message)

    def _hold(self, held: Held) -> str:
        """Hold the network, or one step there. Return the time of the next probe."""
        provider = self.delivery.provider
        publishing, *step = waits.next_calls(self.delivery)
        calls = step[0] if held.this_step and step else publishing
        if waits.find_hold(self.tx, provider, calls) is None:
            # Each probe gets the same response, so only the first is logged.
            message = f"the network refuses this app; {waits.describe_hold(calls)}"
            about = {"provider": provider, "reason": held.reason, "code": held.code}
            self.tx.call_after_commit(partial(log.warning, message, **about))
        return waits.hold(self.tx, provider, calls, held.reason, held.code)

    def update_holds(self, ran: Delivery, result: Result) -> None:
        """Release the holds that this run disproves: publishing by an answered commit, questions by any answer, a step
        by its success. Otherwise return the probe."""
        tx, asked, calls, answered = self.tx, ran.asks, waits.next_calls(ran), self.trace.answered
        refused = isinstance(result, Refused) and not result.reauth
        if ran.commits_next and (isinstance(result, Done | Published) or (refused and answered)):
            self._release(waits.PUBLISHING)
        informed = isinstance(result, Done | More | Again | Wait | NotFoundOnAccount | Published)
        if asked and (informed or (answered and isinstance(result, Refused | Undecidable))):
            self._release(waits.QUESTIONS)
        if isinstance(result, Done | More) and not asked:
            self._release(calls[-1])
        match result:
            case Published() | Refused() | NeedsReauth() | Undecidable():
                waits.release_probe(tx, ran.provider, calls, tx.stamp)
            case More() | Again() | Wait() | NotFoundOnAccount():
                waits.release_probe(tx, ran.provider, calls, max(tx.stamp, self.delivery.run_at))

    def _release(self, calls: str) -> None:
        if waits.release(self.tx, self.delivery.provider, calls):
            message = f"the network accepts this app again; {waits.describe_release(calls)}"
            self.tx.call_after_commit(partial(log.info, message, provider=self.delivery.provider))
