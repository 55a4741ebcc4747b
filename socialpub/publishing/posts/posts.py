"""Posts: create, edit, approve, cancel and stop them. Each change is one write."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from socialpub.accounts import key_limits
from socialpub.accounts.api_keys import Caller
from socialpub.core import actor, commands
from socialpub.core.clock import new_id, stamp
from socialpub.core.errors import Conflict, Forbidden, NotFound
from socialpub.db import appliance_state
from socialpub.db.connection import Database, Value
from socialpub.db.delivery import Delivery
from socialpub.db.models import DeliveryRow, MediaRow, PostRow
from socialpub.db.queries import post_list
from socialpub.db.queries.post_list import PostFilter, PostPage
from socialpub.db.states import PostStatus, State
from socialpub.db.tables import (
    artifact_rows,
    audience_rows,
    audit_log,
    delivery_rows,
    log_entries,
    post_rows,
    waits,
)
from socialpub.db.tables.audience_rows import Scope
from socialpub.db.tables.audit_log import AuditAction
from socialpub.providers.base import Content
from socialpub.publishing.delivery import read_back
from socialpub.publishing.delivery.read_back import STOPPED
from socialpub.publishing.delivery.settle import Settlement
from socialpub.publishing.media import uploads
from socialpub.publishing.posts import approvals, details, drafts, replies
from socialpub.publishing.posts.content import first_endpoint, load_content, make_content_key
from socialpub.publishing.posts.drafts import Draft, DraftMedia, Target
from socialpub.runtime import Runtime

_QUEUED = State.QUEUED.letter


def create(rt: Runtime, tx: Database, draft: Draft, caller: Caller) -> str:
    """Accept a post and the files that arrived with it; return its id.

    Raises InvalidRequest with every failing field, RateLimited, and Unavailable.
    """
    if draft.media:
        _insert_arrived(rt, tx, draft)
    targets = drafts.check_targets(rt, tx, draft, caller, tx.now)
    post_id = accept(rt, tx, draft, targets, caller)
    at = stamp(draft.scheduled_at) if draft.scheduled_at else None
    record(tx, AuditAction.POST_CREATED, post_id, draft.body, scheduled_at=at)
    return post_id


def accept(rt: Runtime, tx: Database, draft: Draft, targets: Sequence[Target], caller: Caller) -> str:
    """Store a checked post and a delivery for each target. Return the post's id.

    Raises RateLimited and InvalidRequest above the daily limit of the caller.
    """
    post_id, body = new_id(tx.now), draft.body
    at = stamp(draft.scheduled_at) if draft.scheduled_at else None
    if caller.posts_per_day is not None:
        key_limits.record_use(tx, caller, post_id, len(targets))
    post = {
        "id": post_id,
        "status": PostStatus.SCHEDULED if at else PostStatus.PENDING,
        "body": body,
        "created_at": tx.stamp,
        "updated_at": tx.stamp,
        "scheduled_at": at,
        "audience_id": audience_rows.find_or_create(
            tx, [(of_target.profile.id, of_target.profile.provider) for of_target in targets]
        ),
        "outcomes": _QUEUED * len(targets),
        "restore_count": len(appliance_state.restores(tx)),
        "key_id": caller.key_id,
    }
    tx.insert(PostRow, post)
    content = Content(body or "", (), {})
    if draft.media:
        _insert_media(tx, post_id, draft.media)
        content = load_content(rt, tx, post_id)
    content_key, due_at = make_content_key(body, len(draft.media)), at or tx.stamp
    rows: list[dict[str, Value]] = []
    delivery_ids = [new_id(tx.now) for _ in targets]
    for position, target in enumerate(targets):
        profile = target.profile
        rows.append(
            {
                "id": delivery_ids[position],
                "post_id": post_id,
                "position": position,
                "profile_id": profile.id,
                "provider": profile.provider,
                "profile_name": profile.name,
                "account_id": profile.account_id,
                "state": State.QUEUED,
                "options": delivery_rows.as_json(target.options),
                "scheduled_at": at,
                "due_at": due_at,
                "run_at": replies.first_run_at(tx, target.reply_to, due_at) if target.reply_to else due_at,
                "content_key": content_key,
                "first_endpoint": first_endpoint(rt, profile.provider, content, target.options),
                "retry_of": target.retry_of,
                "reply_to": target.reply_to,
            }
        )
    tx.insert(DeliveryRow, *rows)
    log_entries.record(tx, "pending", *delivery_ids)
    for target in targets:
        if not (at or caller.approval):
            tx.call_after_commit(rt.wakeup.notify, target.profile.provider, target.profile.id)
    if caller.approval:
        approvals.update(rt, tx, post_id, caller)
    return post_id


# --- lists -----------------------------------------------------------------------------------------------------------


async def load_page(rt: Runtime, caller: Scope, query: PostFilter) -> PostPage:
    """Return a page of the posts that the caller sees. Call this on the event loop: long reads run in a thread."""
    totals = rt.post_totals.of_version(rt.db.data_version)
    key = caller.providers, caller.profiles, query.of_all_pages
    counted = totals.get(key)

    def load(db: Database) -> PostPage:
        if counted is None:
            audiences = audience_rows.visible_audiences(db, caller, query.profiles or None, query.providers or None)
            wanted, total = post_list.find_groups(db, replace(query, audiences=audiences)), None
        else:
            wanted, total = replace(counted[0], page=query.page, per_page=query.per_page), counted[1]
        page = post_list.load_page(db, wanted, total)
        totals[key] = wanted, page.total
        return page

    is_slow = post_list.is_slow(rt.db, query, counted is not None)
    if is_slow or (counted is None and audience_rows.are_many(rt.db)):
        return await rt.read_in_thread(load)
    return load(rt.db)


# --- changing --------------------------------------------------------------------------------------------------------


def edit(rt: Runtime, tx: Database, post_id: str, draft: Draft, caller: Caller) -> None:
    """Replace the given fields of a future scheduled post. Equal values change nothing, not even an approval.

    Raises NotFound, InvalidRequest, Conflict, and Unavailable.
    """
    if draft.media:
        _insert_arrived(rt, tx, draft)
    post, targets = check_edit(rt, tx, post_id, draft, caller, tx.now)
    if _repeats(tx, post, draft, targets):
        return
    body = draft.body if "body" in draft.given else post.body
    used_before = _named_artifacts(tx, post_id)
    _store_earlier_content(tx, post)
    if "media" in draft.given:
        tx.delete(MediaRow, MediaRow.post_id == post_id)
        _insert_media(tx, post_id, draft.media)
    media_count = len(post_rows.list_media(tx, post_id))
    content = Content(body or "", (), {})
    if media_count:
        content = replace(load_content(rt, tx, post_id), text=body or "")
    content_key = make_content_key(body, media_count)
    scheduled_at = post.scheduled_at
    if "scheduled_at" in draft.given:
        scheduled_at = _stamp_or_none(draft.scheduled_at)
    due_at = scheduled_at or tx.stamp
    for delivery in delivery_rows.list_of_post(tx, post_id):
        options, reply_to = json.loads(delivery.options), delivery.reply_to
        if target := targets.get(delivery.id):
            options, reply_to = target.options, target.reply_to
        tx.update(
            DeliveryRow,
            delivery.id,
            options=delivery_rows.as_json(options),
            scheduled_at=scheduled_at,
            due_at=due_at,
            run_at=replies.first_run_at(tx, reply_to, due_at),
            plan=None,
            step=0,
            content_key=content_key,
            first_endpoint=first_endpoint(rt, delivery.provider, content, options),
            reply_to=reply_to,
        )
        if scheduled_at is None:
            tx.call_after_commit(rt.wakeup.notify, delivery.provider, delivery.profile_id)
    artifact_rows.drop(tx, used_before - _named_artifacts(tx, post_id), tx.stamp)
    status = PostStatus.SCHEDULED if scheduled_at else PostStatus.PENDING
    restore_count = len(appliance_state.restores(tx))  # now the post belongs to this installation
    post_rows.change_text(tx, post, body)
    approvals.update(rt, tx, post_id, caller)
    tx.update(PostRow, post_id, scheduled_at=scheduled_at, restore_count=restore_count)
    post_rows.set_status(tx, post_id, status)
    record(tx, AuditAction.POST_EDITED, post_id, body, fields=sorted(draft.given))


def _repeats(tx: Database, post: PostRow, draft: Draft, targets: Mapping[str, Target]) -> bool:
    """Return whether a change contains only the current values."""
    values = {
        "body": (draft.body, post.body),
        "scheduled_at": (_stamp_or_none(draft.scheduled_at), post.scheduled_at),
        "media": ([(item.artifact_id, item.alt) for item in draft.media], post_rows.list_media(tx, post.id)),
    }
    if any(name in draft.given and new != current for name, (new, current) in values.items()):
        return False
    for row in delivery_rows.list_of_post(tx, post.id):
        target = targets.get(row.id)
        # As JSON, because 1, 1.0 and true are equal in Python.
        if target is not None and (
            json.dumps(target.options, sort_keys=True) != json.dumps(json.loads(row.options), sort_keys=True)
            or target.reply_to != row.reply_to
        ):
            return False
    return True


def check_edit(
    rt: Runtime, db: Database, post_id: str, draft: Draft, caller: Caller, now: datetime
) -> tuple[PostRow, dict[str, Target]]:
    """Return the post, and the new target of each delivery whose options change.

    Raises NotFound, InvalidRequest, Conflict.
    """
    post = find_visible(db, post_id, caller)
    targets = drafts.check_change(rt, db, post, draft, caller, now)
    check_changeable(post.status, post.scheduled_at, stamp(now))
    return post, targets


def check_changeable(status: str, scheduled_at: str | None, now: str) -> None:
    """Raise Conflict unless the post is scheduled for the future."""
    if status != PostStatus.SCHEDULED or (scheduled_at or "") <= now:
        raise Conflict("Only posts scheduled for the future can be edited.")


def approve(rt: Runtime, tx: Database, post_id: str, version: str) -> bool:
    """Approve this version of a post that waits for the owner. Return whether the post waited.

    Raises NotFound, and Conflict, also if the post has another version (`PostDetails.version`) now.
    """
    post = _find(tx, post_id)
    if post.status in post_rows.FINAL:
        raise Conflict(f"The post is already {post.status}. There is nothing to approve.")
    post_details = details.load_details(rt, tx, post_id)
    if post_details is None or not post_details.waits_for_approval:
        return False
    if post_details.reads_card:
        raise Conflict("The link card is being read. You can approve the post when its page shows the card.")
    if version != post_details.version:
        raise Conflict("The post was changed after you read it, so it is not approved. Check the new version first.")
    approvals.approve(rt, tx, post_id)
    record(tx, AuditAction.POST_APPROVED, post_id, post.body)
    return True


def cancel(rt: Runtime, tx: Database, post_id: str, caller: Caller) -> None:
    """Cancel a scheduled post that has not started. Raises NotFound, Conflict."""
    post = find_visible(tx, post_id, caller)
    check_cancelable(tx, post_id, tx.stamp)
    _cancel(rt, tx, post_id)
    record(tx, AuditAction.POST_CANCELED, post_id, post.body)


def check_cancelable(db: Database, post_id: str, now: str) -> None:
    """Raise NotFound, and Conflict unless this post can be canceled now."""
    post = _find(db, post_id)
    if post.status != PostStatus.SCHEDULED:
        raise Conflict(f"The post is {post.status}; only a scheduled post that has not started can be canceled.")
    if _may_be_published(db, post, now):
        with commands.in_public():
            how = commands.or_run("admin", "resume")
        raise Conflict(
            "socialpub was restored from a backup, and the original installation may have published this post. To "
            "find out, press "
            f"“Resume” under System in the dashboard{how}."
        )


def stop(rt: Runtime, tx: Database, post_id: str) -> dict[str, str]:
    """Stop the deliveries that are not past their commit, or cancel a scheduled post. Return the states by delivery id.

    Raises NotFound.
    """
    post = _find(tx, post_id)
    if post.status == PostStatus.SCHEDULED and not _may_be_published(tx, post, tx.stamp):
        _cancel(rt, tx, post_id)
    else:
        _stop_deliveries(rt, tx, post_id)
    if post.status in (PostStatus.SCHEDULED, PostStatus.PENDING):
        record(tx, AuditAction.POST_STOPPED, post_id, post.body)
    return {row.id: row.state for row in delivery_rows.list_of_post(tx, post_id)}


def _stop_deliveries(rt: Runtime, tx: Database, post_id: str) -> None:
    """Fail each delivery before its commit. Read back the others, and never send them again."""
    # The original installation may have published the deliveries that were due since the backup. The resume reads the
    # deliveries back.
    unclear = _may_be_of_original(tx, post_id)
    for delivery in delivery_rows.list_open_of_post(tx, post_id):
        delivery.progress.stopped = True
        if not may_be_sent(tx, delivery, tx.stamp):
            Settlement(rt, tx, delivery).fail(STOPPED)
            continue
        tx.update(DeliveryRow, delivery.id, progress=delivery_rows.as_json(delivery.progress.as_dict()))
        reads_back = delivery.phase.reads_back and not delivery.phase.is_uncalled
        if delivery.state is State.QUEUED and not reads_back and not unclear:
            # The next run is a read-back, which does not wait for hours.
            tx.update(DeliveryRow, delivery.id, run_at=min(delivery.run_at, tx.stamp))


def may_be_sent(db: Database, delivery: Delivery, now: str) -> bool:
    """Return whether this or another installation may have published an open delivery."""
    unclear = delivery.due_at <= now and _may_be_of_original(db, delivery.post_id)
    return delivery.past_commit or delivery.phase.restored or unclear


def check_stoppable(status: str) -> None:
    """Raise Conflict if a post of this status has no open delivery."""
    if status in post_rows.FINAL:
        raise Conflict(f"The post is already {status}. There is nothing to stop.")


def visible(db: Database, caller: Caller, post_id: str) -> bool:
    post = post_rows.find(db, post_id)
    return post is not None and audience_rows.sees(db, caller, post.audience_id)


def find_visible(db: Database, post_id: str, caller: Caller) -> PostRow:
    """Return the row of a post that the caller sees. Raises NotFound."""
    post = _find(db, post_id)
    if not audience_rows.sees(db, caller, post.audience_id):
        raise NotFound("No post has this id.")
    return post


def check_own(db: Database, post_id: str, caller: Caller) -> None:
    """Raise NotFound, and Forbidden unless the caller's key, which has a limit, created this post (contract 10.3)."""
    if _find(db, post_id).key_id != caller.key_id:
        raise Forbidden(
            "Another key or the owner created this post. A key with a limit on its posts changes and cancels only the "
            "posts that it created. Use a key without such a limit."
        )


def record(tx: Database, action: AuditAction, post_id: str, body: str | None, **detail: Any) -> None:
    """Record an action of the owner in the audit log. The label is the post's text on one line."""
    if actor.is_owner(tx.actor):  # the audit log does not contain actions of API keys
        audit_log.record(tx, action, post_id, " ".join(body.split()) if body else None, **detail)


# --- inside ----------------------------------------------------------------------------------------------------------


def _find(db: Database, post_id: str) -> PostRow:
    post = post_rows.find(db, post_id)
    if post is None:
        raise NotFound("No post has this id.")
    return post


def _stamp_or_none(instant: datetime | None) -> str | None:
    return None if instant is None else stamp(instant)


def _may_be_published(db: Database, post: PostRow, now: str) -> bool:
    """Return whether the original installation may have published a scheduled post before the resume."""
    return _may_be_of_original(db, post.id) and (post.scheduled_at or "") <= now


def _may_be_of_original(db: Database, post_id: str) -> bool:
    """Return whether this post came with a restored backup that was not resumed yet."""
    return appliance_state.restored_from(db) is not None and post_rows.elsewhere_since(db, post_id) is not None


def _store_earlier_content(tx: Database, post: PostRow) -> None:
    """Before an edit, store the current content: another installation may publish it."""
    since = post_rows.elsewhere_since(tx, post.id)
    if since is None:
        return
    for delivery in delivery_rows.list_open_of_post(tx, post.id):
        content = {"body": post.body, "media": post_rows.list_media(tx, post.id), "options": delivery.options}
        read_back.require_first(tx, delivery, since, [content])


def _cancel(rt: Runtime, tx: Database, post_id: str) -> None:
    for row in delivery_rows.list_of_post(tx, post_id):
        tx.update(DeliveryRow, row.id, state=State.CANCELED)
        waits.forget(tx, row.id)
        log_entries.record(tx, "canceled", row.id)
        if delivery_rows.wake_replies(tx, row.id, published=False):
            tx.call_after_commit(rt.wakeup.notify, row.provider, row.profile_id)
    tx.update(PostRow, post_id, canceled_at=tx.stamp)
    post_rows.set_status(tx, post_id, PostStatus.CANCELED)


def _named_artifacts(tx: Database, post_id: str) -> set[str]:
    artifact_ids = {artifact_id for artifact_id, _ in post_rows.list_media(tx, post_id)}
    return artifact_ids | delivery_rows.artifacts_in_options(
        row.options for row in delivery_rows.list_of_post(tx, post_id)
    )


def _insert_arrived(rt: Runtime, tx: Database, draft: Draft) -> None:
    uploads.insert_arrived(rt, tx, [item.arriving for item in draft.media if item.arriving])


def _insert_media(tx: Database, post_id: str, media: Sequence[DraftMedia]) -> None:
    for position, item in enumerate(media):
        row = {"id": new_id(tx.now), "post_id": post_id, "position": position}
        tx.insert(MediaRow, {**row, "artifact_id": item.artifact_id, "alt": item.alt})
