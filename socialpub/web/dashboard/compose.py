"""`/compose`: a post is written, checked against what its networks take, and accepted. `/posts/{id}/edit`: the same
for one that is scheduled."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import orjson

from socialpub.accounts.api_keys import OWNER
from socialpub.core.errors import Conflict, InvalidRequest
from socialpub.db import json_views
from socialpub.db.models import PostStatus
from socialpub.db.transaction import Tx
from socialpub.publishing import idempotency, posts
from socialpub.publishing.drafts import Change, Draft
from socialpub.publishing.idempotency import Kept, Ticket
from socialpub.runtime import Runtime
from socialpub.web.answer import Answer
from socialpub.web.dashboard import compose_check, compose_form, compose_media, compose_page, forgery, form_files, times
from socialpub.web.dashboard.compose_check import Checked
from socialpub.web.dashboard.compose_form import ComposeForm
from socialpub.web.dashboard.compose_page import Circumstances, Said
from socialpub.web.dashboard.form_files import FilesForm
from socialpub.web.dashboard.page import nothing_here, page, refusal
from socialpub.web.dashboard.visit import Visit

CHANGED = (
    "This form has become a post already, with other content. Press the button again to make another post of what "
    "stands here now."
)
PROCESSING = "It can take a few minutes until TikTok has processed it."

Do = Callable[[ComposeForm, Circumstances, Checked], Awaitable[Answer]]


@page()
async def show(rt: Runtime, visit: Visit) -> Answer:
    """An empty form, or one that begins with another post's content (`from`), a time (`at`) or profiles."""
    around = await compose_page.look(rt, anew=True)
    form = ComposeForm(zone=times.zone_name(visit.zone))
    if visit.query.text("from"):
        form = compose_form.of_post(_post(rt, visit.query.text("from")), visit.zone, whole=False)
    known = [row["id"] for row in around.connected]
    wanted = [one for text in visit.query.texts("profiles") for one in text.split(",")] or form.profiles
    form = replace(form, profiles=tuple(one for one in known if one in wanted))
    if not form.profiles and len(known) == 1:
        form = replace(form, profiles=tuple(known))
    at = times.of_query(visit.query.text("at"), visit.zone)
    if at is not None:
        form = replace(form, when=compose_form.AT, time=times.for_field(at, visit.zone))
    return await compose_page.show(rt, visit, form, around)


@page(streams=True)
async def submit(rt: Runtime, visit: Visit) -> Answer | None:
    """The form was sent: to be checked, to be changed (files, their order), or to become a post."""
    received = await form_files.receive(rt, visit, lambda error: refusal(visit, error))
    if received is None:
        return None
    with received:
        form = compose_form.read(received.form, visit.zone)
        ticket = _ticket(visit, form, received)
        try:
            kept = idempotency.find(rt, rt.reader, ticket, rt.now())
        except Conflict:
            return await _sent_before(rt, visit, form, received)
        if kept is not None and received.form.text("do") != "check":
            return visit.go(
                f"/posts/{kept.location}", status="This form was sent before: this is the post that it became."
            )

        async def publish(form: ComposeForm, around: Circumstances, checked: Checked) -> Answer:
            assert checked.draft is not None
            post_id = await rt.write_soon(_create_once, ticket, checked.draft)
            return visit.go(f"/posts/{post_id}", status=_accepted(form, around, visit))

        around = await compose_page.look(rt, anew=False)
        return await _handle(rt, visit, received, form, around, publish)


@page()
async def edit_form(rt: Runtime, visit: Visit) -> Answer:
    """The form of a scheduled post."""
    post = _post(rt, visit.params["postId"])
    if post["status"] != PostStatus.SCHEDULED:
        raise Conflict(
            f"This post is {post['status']}: only a scheduled post whose time is still to come can be changed."
        )
    form = compose_form.of_post(post, visit.zone, whole=True)
    around = await compose_page.look(rt, anew=True, only=form.profiles)
    return await compose_page.show(rt, visit, form, around, editing=post["id"])


@page(streams=True)
async def save(rt: Runtime, visit: Visit) -> Answer | None:
    """The form of a scheduled post was sent."""
    received = await form_files.receive(rt, visit, lambda error: refusal(visit, error))
    if received is None:
        return None
    with received:
        post = _post(rt, visit.params["postId"])
        before = compose_form.of_post(post, visit.zone, whole=True)
        form = replace(compose_form.read(received.form, visit.zone), profiles=before.profiles)
        around = await compose_page.look(rt, anew=False, only=form.profiles)

        async def change(form: ComposeForm, around: Circumstances, checked: Checked) -> Answer:
            assert checked.draft is not None
            change = _change(rt, checked.draft, form, before, around.networks)
            await rt.write_soon(posts.edit, post["id"], change, OWNER)
            return visit.go(f"/posts/{post['id']}", status="The post is changed.")

        return await _handle(rt, visit, received, form, around, change, editing=post["id"])


async def _handle(
    rt: Runtime,
    visit: Visit,
    received: FilesForm,
    form: ComposeForm,
    around: Circumstances,
    do: Do,
    *,
    editing: str | None = None,
) -> Answer:
    """What the pressed button says; `do` makes or changes the post."""
    files = await form_files.keep(rt, received)
    form = form.with_media(files.artifact_ids)
    sent = received.form
    artifact_id, _, direction = sent.text("move").partition(":")
    form = form.moved(artifact_id, direction).without(sent.text("remove"))
    only_changed = sent.ticked("move") or sent.ticked("remove")
    checked = await compose_check.check(rt, form, around, files.refused, content=not only_changed, editing=editing)
    acts = sent.text("do") in ("publish", "anyway") and not only_changed
    if acts and checked.may_be_done(anyway=sent.text("do") == "anyway"):
        try:
            return await do(form, around, checked)
        except InvalidRequest as error:
            checked = compose_check.refused(error, form, around)
    # Whoever asked what is wrong is told it: only what should have been done is refused.
    status = 400 if acts else 200
    return await compose_page.show(rt, visit, form, around, checked.said, http_status=status, editing=editing)


async def _sent_before(rt: Runtime, visit: Visit, form: ComposeForm, received: FilesForm) -> Answer:
    """The same form with other content: it may become another post, but not unasked."""
    files = await form_files.keep(rt, received)
    form = replace(form.with_media(files.artifact_ids), form_id=ComposeForm().form_id)
    around = await compose_page.look(rt, anew=False)
    return await compose_page.show(rt, visit, form, around, Said(message=CHANGED), http_status=409)


def _create_once(rt: Runtime, tx: Tx, ticket: Ticket, draft: Draft) -> str:
    """The post of this form: made now, or by another request with the same form that was quicker."""
    kept = idempotency.begin(rt, tx, ticket)
    if kept is not None:
        return str(kept.location)
    return idempotency.keep(rt, tx, ticket, _keep, posts.create, draft, OWNER)


def _keep(_rt: Runtime, _tx: Tx, post_id: str) -> Kept:
    return Kept(303, post_id, b"")


def _ticket(visit: Visit, form: ComposeForm, received: FilesForm) -> Ticket:
    sent = [[name, text] for name, text in received.form.fields if name not in (forgery.FIELD, "do")]
    fingerprint = idempotency.fingerprint(visit.path, sent, received.fingerprints)
    return Ticket(OWNER.key_id, f"form {form.form_id}", fingerprint)


def _change(rt: Runtime, draft: Draft, form: ComposeForm, before: ComposeForm, networks: list[str]) -> Change:
    """Options count only where they were changed: those of the post may differ between its profiles."""
    given = {"body", "scheduled_at", "media"}
    only_photos = compose_media.only_photos(rt, form)
    if form.sent_options(networks, only_photos=only_photos) != before.sent_options(networks, only_photos=only_photos):
        given.add("options")
    return Change(frozenset(given), draft.body, draft.scheduled_at, draft.media, draft.options)


def _accepted(form: ComposeForm, around: Circumstances, visit: Visit) -> str:
    at = form.scheduled_at
    said = (
        f"The post is scheduled for {times.written(at, visit.zone)}."
        if at
        else "The post is accepted and goes out now."
    )
    chosen = {row["provider"] for row in around.connected if row["id"] in form.profiles}
    return f"{said} {PROCESSING}" if "tiktok" in chosen else said


def _post(rt: Runtime, post_id: str) -> dict[str, Any]:
    found = json_views.post(rt.reader, post_id)
    if found is None:
        raise nothing_here()
    post: dict[str, Any] = orjson.loads(found)
    return post
