"""What each network would refuse about a draft, learned before it is posted."""

from collections.abc import Iterator
from dataclasses import dataclass

from socialpub.accounts.api_keys import Caller
from socialpub.core import units
from socialpub.core.errors import FieldError, InvalidRequest
from socialpub.db import appliance_state
from socialpub.db.connection import Reader
from socialpub.db.states import ProfileStatus
from socialpub.publishing.delivery import profile_queue, waiting
from socialpub.publishing.posts import content as post_content
from socialpub.publishing.posts import drafts
from socialpub.publishing.posts.drafts import Draft
from socialpub.runtime import Runtime


@dataclass(frozen=True, slots=True)
class CheckedDelivery:
    """What a network would say about a draft: what it refuses, and what is worth knowing although nothing is wrong."""

    profile_id: str
    provider: str
    problems: list[FieldError]
    notes: list[str]


def validate(
    rt: Runtime, reader: Reader, draft: Draft, caller: Caller, editing: str | None = None
) -> list[CheckedDelivery]:
    """What each network would refuse about this draft; the same checks run just before sending. Stores nothing.
    `editing` is the post that the draft would change.

    Raises InvalidRequest where `create` would.
    """
    checked = []
    targets = drafts.targets(rt, reader, draft, caller, rt.now())
    given = [(target.profile.provider, target.options) for target in targets]
    content = post_content.draft_content(rt, reader, draft, given)
    for target in targets:
        profile, options = target.profile, target.options
        problems = post_content.check_content(rt, profile, content, options)
        provider = rt.providers[profile.provider]
        chosen = provider.read_options(options)[0]
        notes = provider.notes(content, chosen, post_content.to_account(profile))
        if limits := provider.app_limits(chosen):
            notes = [" ".join(limits.sentences), *notes]
        if profile.status is ProfileStatus.REAUTH_REQUIRED:
            hours = waiting.format_hours(rt.settings.publishing.max_lateness)
            wait = f"What comes due for it waits until then, and fails when that is more than {hours} late."
            notes = [f"{waiting.reconnect_reason(profile)} {wait}", *notes]
        else:
            notes = [*_gap(rt, reader, draft, profile.id, editing), *notes]
        checked.append(CheckedDelivery(profile.id, profile.provider, problems, notes))
    return checked


def _gap(rt: Runtime, reader: Reader, draft: Draft, profile_id: str, editing: str | None) -> Iterator[str]:
    """That `publishing.min_gap` delays this draft, and until about when."""
    time = draft.scheduled_at or rt.now()
    at, queued = profile_queue.publishes_at(rt, reader, profile_id, time, editing)
    if at <= time:
        return
    gap = units.duration(rt.settings.publishing.min_gap)
    posts = units.count(queued, "post is", "posts are")
    before = f" {posts} queued before this one." if queued else ""
    when = f"{at:%Y-%m-%d %H:%M} UTC" + (", after its time" if draft.scheduled_at else "")
    paused = ", unless publishing stays paused" if appliance_state.paused_at(reader) else ""
    yield (
        f"Two posts of one profile are at least {gap} apart (publishing.min_gap).{before} This one is published at "
        f"about {when}{paused}."
    )


def refuse_problems(rt: Runtime, reader: Reader, draft: Draft, caller: Caller) -> None:
    """Raises InvalidRequest with everything that a network would refuse about this draft."""
    problems = [problem for delivery in validate(rt, reader, draft, caller) for problem in delivery.problems]
    if problems:
        raise InvalidRequest.of(list(dict.fromkeys(problems)))
