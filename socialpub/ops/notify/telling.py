"""What the owner is told next: pure decisions over what is found now and what they know.

What is found together is told together. What lasts is not repeated, but for a reminder each week; what comes and goes
is told later each time. An end is told once it has lasted for a while, unless the cause was one that passes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from socialpub.core.clock import parse, stamp
from socialpub.db.told_causes import ToldCause
from socialpub.ops.causes import Cause, subject_of

GROUPING = (
    timedelta(minutes=1),
    timedelta(minutes=5),
    timedelta(minutes=15),
    timedelta(minutes=30),
    timedelta(hours=1),
)
"""How long others may join a cause before it is told: the first time within a day, the second, and so on."""
STAYS_WELL = timedelta(minutes=5)
REMIND = timedelta(days=7)
REMEMBERED = timedelta(days=1)
"""What comes back within this time is known for coming back."""


@dataclass(frozen=True, slots=True)
class CauseChanges:
    """What one look at the causes changes in what is known."""

    known: dict[str, ToldCause]
    changed: list[ToldCause]
    forgotten: list[str]


@dataclass(frozen=True, slots=True)
class Due:
    """What the next message tells."""

    begun: list[ToldCause] = field(default_factory=list)
    came_and_went: list[ToldCause] = field(default_factory=list)
    """While the daily limit kept them back."""
    lasting: list[ToldCause] = field(default_factory=list)
    ended: list[ToldCause] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.begun or self.came_and_went or self.lasting or self.ended)

    @property
    def causes(self) -> list[ToldCause]:
        return [*self.begun, *self.came_and_went, *self.lasting, *self.ended]


def look(known: Mapping[str, ToldCause], found: Mapping[str, Cause], now: datetime) -> CauseChanges:
    """What is known once these causes were found."""
    after: dict[str, ToldCause] = {}
    for key, cause in found.items():
        after[key] = _found(known[key], now) if key in known else _new(known, cause, now)
    subjects = {subject_of(key) for key in found}
    for key, old in known.items():
        if key not in found:
            missing = _missing(old, now, succeeded=old.subject in subjects)
            if missing is not None:
                after[key] = missing
    changed = [one for key, one in after.items() if known.get(key) != one]
    return CauseChanges(after, changed, [key for key in known if key not in after])


def _new(known: Mapping[str, ToldCause], cause: Cause, now: datetime) -> ToldCause:
    told = [one for one in known.values() if one.subject == cause.subject and one.told_at is not None]
    return ToldCause(
        cause.key,
        cause.subject,
        cause.kind.value,
        cause.sentence,
        cause.passes,
        stamp(now),
        # Each time that something passing happens it has a key of its own.
        returns=len(told) if cause.passes else 0,
    )


def _found(old: ToldCause, now: datetime) -> ToldCause:
    if old.ended_at is None:
        return old
    if old.told_at is not None:  # its end was not told yet: for the owner it has been there all along
        return replace(old, ended_at=None, returns=old.returns if old.passes else old.returns + 1)
    short = now - parse(old.ended_at) < STAYS_WELL
    return replace(old, since=old.since if short or old.held_back else stamp(now), ended_at=None)


def _missing(old: ToldCause, now: datetime, *, succeeded: bool) -> ToldCause | None:
    """What is left of a cause that was not found. `succeeded`: its subject is in need in another way now."""
    if old.ended_at is None:
        return None if succeeded and not old.passes else replace(old, ended_at=stamp(now))
    if old.held_back or (old.told_at is not None and not old.passes):
        return old  # there is something left to tell
    return old if now - parse(old.ended_at) < REMEMBERED else None


def due(known: Mapping[str, ToldCause], now: datetime) -> Due:
    """What has waited long enough for others to join it, and all that has not been told besides."""
    untold = [one for one in known.values() if one.told_at is None and one.ended_at is None]
    told = [one for one in known.values() if one.told_at is not None and not one.passes]
    found = Due(
        begun=[one for one in untold if now - parse(one.since) >= _grouping(one)],
        came_and_went=[one for one in known.values() if one.held_back and one.ended_at is not None],
        lasting=[one for one in told if one.ended_at is None and now - parse(one.told_at or "") >= REMIND],
        ended=[
            one
            for one in told
            if one.ended_at is not None and now - parse(one.ended_at) >= max(STAYS_WELL, _grouping(one))
        ],
    )
    if found:
        found.begun.extend(one for one in untold if one not in found.begun and not one.returns)
    return found


def after_telling(message: Due, now: datetime) -> list[ToldCause]:
    """What is known once the owner was told."""
    at = stamp(now)
    return [
        *(replace(one, told_at=at, held_back=False) for one in (*message.begun, *message.lasting)),
        *(replace(one, held_back=False) for one in message.came_and_went),
        *(replace(one, told_at=None, returns=one.returns + 1) for one in message.ended),
    ]


def hold_back(message: Due) -> list[ToldCause]:
    """What is known once the daily limit kept the owner from being told. Ends and reminders wait by themselves."""
    return [replace(one, held_back=True) for one in message.begun if not one.held_back]


def _grouping(cause: ToldCause) -> timedelta:
    return GROUPING[min(cause.returns, len(GROUPING) - 1)]
