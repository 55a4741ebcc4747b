"""`/compose`: a post is written, checked against what its networks take, and accepted."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from socialpub.accounts.api_keys import OWNER
from socialpub.core.errors import Conflict, InvalidRequest
from socialpub.db.connection import Tx
from socialpub.db.queries import api_json
from socialpub.db.tables import profile_rows
from socialpub.publishing.posts import idempotency, posts, retries
from socialpub.publishing.posts.retries import RetryOutlook
from socialpub.runtime import Runtime
from socialpub.web.dashboard import labels
from socialpub.web.dashboard.browser import security, times
from socialpub.web.dashboard.browser.visit import Visit, no_such_page, page, refusal
from socialpub.web.dashboard.compose import check, context, form_page, media
from socialpub.web.dashboard.compose import form as compose_form
from socialpub.web.dashboard.compose.check import CheckResult, Messages
from socialpub.web.dashboard.compose.context import FormContext
from socialpub.web.dashboard.compose.form import ComposeForm
from socialpub.web.dashboard.compose.media import FilesForm
from socialpub.web.dashboard.posts import submissions
from socialpub.web.dashboard.posts.submissions import SAVE, EqualPost
from socialpub.web.http.answer import Answer

COPIED = "This is a new post with the content of your form. Nothing is published yet."
FAILED = "This is a new post with the content of the one that failed. Change it before you publish it."
PROCESSING = "It can take a few minutes until TikTok has processed it."

Do = Callable[[ComposeForm, FormContext, CheckResult], Awaitable[Answer]]


@page()
async def show(rt: Runtime, visit: Visit) -> Answer:
    """An empty form, or one that begins with another post's content (`from`, `again`), a time (`at`) or profiles."""
    around = await context.load_context(rt, refresh=True)
    form, said = ComposeForm(zone=times.zone_name(visit.zone)), Messages()
    if visit.query.text("again"):
        post = load_post(rt, visit.query.text("again"))
        outlook = retries.outlook(rt.reader, post["id"])
        if not outlook.certain:
            return visit.go(f"/posts/{post['id']}", alert=outlook.why)
        form, said = _failed(rt, visit, post, outlook)
    elif visit.query.text("from"):
        post = load_post(rt, visit.query.text("from"))
        form = replace(compose_form.of_post(post, visit.zone, whole=False), twice=post["id"])
    known = [row.id for row in around.connected]
    wanted = [one for text in visit.query.texts("profiles") for one in text.split(",")] or form.profiles
    form = replace(form, profiles=tuple(one for one in known if one in wanted))
    if not form.profiles and len(known) == 1:
        form = replace(form, profiles=tuple(known))
    at = times.of_query(visit.query.text("at"), visit.zone)
    if at is not None:
        form = replace(form, when=compose_form.AT, time=at[0], which=at[1])
    return await form_page.show(rt, visit, form, around, said)


@page(streams=True)
async def submit(rt: Runtime, visit: Visit) -> Answer | None:
    """The form was sent: to be checked, to be changed (files, their order), or to become a post."""
    received = await media.receive_form(rt, visit, lambda error: refusal(visit, error))
    if received is None:
        return None
    with received:
        form = compose_form.read(received.form, visit.zone)
        if received.form.text("do") == "copy":
            return await _copy(rt, visit, form, received)
        sent = [[name, text] for name, text in received.form.fields if name not in (security.CSRF_FIELD, "do")]
        ticket = submissions.request_key(form.form_id, visit.path, sent, received.fingerprints)
        try:
            kept = idempotency.find(rt, rt.reader, ticket, rt.now())
        except Conflict:
            return await _sent_before(rt, visit, form, received)
        if kept is not None and received.form.text("do") != "check":
            return visit.go(f"/posts/{kept.location}", status=submissions.SUBMITTED)

        async def publish(form: ComposeForm, around: FormContext, checked: CheckResult) -> Answer:
            assert checked.draft is not None
            draft = checked.draft
            confirmed = None if received.form.ticked("scripted") else form.twice

            def make(rt: Runtime, tx: Tx) -> str:
                if form.again:
                    return retries.retry_changed(rt, tx, form.again, draft, OWNER)
                return posts.create(rt, tx, draft, OWNER)

            try:
                post_id, is_new = await rt.write_soon(submissions.submit_unless_equal, ticket, draft, confirmed, make)
            except EqualPost as equal:
                asked = replace(form, twice=equal.post_id)
                said = Messages(message=submissions.EQUAL, post_id=equal.post_id)
                return await form_page.show(rt, visit, asked, around, said, http_status=409)
            return visit.go(f"/posts/{post_id}", status=_accepted(form, around) if is_new else submissions.SUBMITTED)

        around = await context.load_context(rt, refresh=False)
        return await handle(rt, visit, received, form, around, publish)


async def _copy(rt: Runtime, visit: Visit, form: ComposeForm, received: FilesForm) -> Answer:
    """What the form of a post that can no longer be edited holds, as the beginning of another post."""
    files = await media.keep_files(rt, received)
    around = await context.load_context(rt, refresh=True)
    post = load_post(rt, received.form.text("editing"))
    wanted = {delivery["profileId"] for delivery in post["deliveries"]}
    form = replace(
        form.with_uploads(files.artifact_ids, files.of_options),
        form_id=submissions.new_id(),
        profiles=tuple(row.id for row in around.connected if row.id in wanted),
        # TikTok wants its choices to be made for each post, but for the mode.
        options={
            name: {key: value for key, value in given.items() if name != "tiktok" or key == "mode"}
            for name, given in form.options.items()
        },
        disclosed=False,
        base=None,
    )
    if form.scheduled_at is None or form.scheduled_at <= rt.now():
        form = form.without_time()
    return await form_page.show(rt, visit, form, around, Messages(notice=COPIED))


async def handle(
    rt: Runtime,
    visit: Visit,
    received: FilesForm,
    form: ComposeForm,
    around: FormContext,
    do: Do,
    *,
    editing: str | None = None,
    judged: Callable[[ComposeForm], ComposeForm] = lambda form: form,
) -> Answer:
    """What the pressed button says; `do` makes or changes the post. `judged` returns the post that the form makes."""
    files = await media.keep_files(rt, received)
    form = form.with_uploads(files.artifact_ids, files.of_options)
    sent = received.form
    artifact_id, _, direction = sent.text("move").partition(":")
    form = form.moved(artifact_id, direction).without(sent.text("remove"))
    only_changed = sent.ticked("move") or sent.ticked("remove")
    checked = await check.check(rt, judged(form), around, files.refused, content=not only_changed, editing=editing)
    acts = sent.text("do").partition(":")[0] in ("publish", "anyway", SAVE) and not only_changed
    if acts and checked.may_be_done(anyway=sent.text("do") == "anyway"):
        try:
            return await do(form, around, checked)
        except InvalidRequest as error:
            checked = check.refused(error, form, around)
    # Whoever asked what is wrong is told it: only what should have been done is refused.
    status = 400 if acts else 200
    return await form_page.show(rt, visit, form, around, checked.said, http_status=status, editing=editing)


async def _sent_before(rt: Runtime, visit: Visit, form: ComposeForm, received: FilesForm) -> Answer:
    """The same form with other content: it may become another post, but not unasked."""
    files = await media.keep_files(rt, received)
    form = replace(form.with_uploads(files.artifact_ids, files.of_options), form_id=submissions.new_id())
    around = await context.load_context(rt, refresh=False)
    return await form_page.show(rt, visit, form, around, Messages(message=submissions.CHANGED), http_status=409)


def _failed(rt: Runtime, visit: Visit, post: dict[str, Any], outlook: RetryOutlook) -> tuple[ComposeForm, Messages]:
    """The content of a post that failed, for the accounts where it failed, and why it did."""
    positions = {row.position for row in outlook.certain}
    failed = {**post, "deliveries": [one for at, one in enumerate(post["deliveries"]) if at in positions]}
    # An account that was connected again is another profile.
    found = (profile_rows.connected(rt.reader, row.provider, row.account_id) for row in outlook.certain)
    form = replace(
        compose_form.of_post(failed, visit.zone, whole=True),
        profiles=tuple(one for one in found if one),
        again=post["id"],
    )
    reasons = [f"{labels.accounts([one])}: {one['errorMessage']}" for one in failed["deliveries"]]
    return form.without_time(), Messages(notice=" ".join((FAILED, *reasons)))


def _accepted(form: ComposeForm, around: FormContext) -> str:
    at = form.scheduled_at
    said = (
        f"The post is scheduled for {times.written(at, times.zone_named(form.zone))}."
        if at
        else "The post is accepted and is being published."
    )
    chosen = {row.provider for row in around.connected if row.id in form.profiles}
    return f"{said} {PROCESSING}" if "tiktok" in chosen else said


def load_post(rt: Runtime, post_id: str) -> dict[str, Any]:
    """The post as the API shows it. Raises NotFound."""
    found = api_json.post(rt.reader, post_id)
    if found is None:
        raise no_such_page()
    post: dict[str, Any] = orjson.loads(found)
    return post


# MERGED from web/dashboard/compose_live.py: `/compose/check`: what the page's script asks while somebody writes: c

MAX_LIVE_CHECKS = 2
"""A text of a hundred thousand characters takes a second of a thread; a script of ours asks one question at a time."""


@dataclass(slots=True)
class LiveChecks:
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_LIVE_CHECKS))


@page()
async def check_live(rt: Runtime, visit: Visit) -> Answer:
    """What there is to say of the form as it stands."""
    form = compose_form.read(visit.form, visit.zone)
    said = Messages()
    async with rt.memory(LiveChecks).turns:
        if form.profiles and (form.body.strip() or form.media):
            # Before there is anything to publish, that there is nothing is no news.
            around = await context.load_context(rt, refresh=False, only=form.profiles)
            said = (await check.check(rt, form, around, [], editing=visit.form.text("editing"))).said
        found = await form_page.form_previews(rt, form)
    return visit.show("_checked.html", form=form, said=said, found=found)
