"""`/compose`: a post is written, checked against the networks' rules, and accepted.

`/compose/check` answers the page's script while the owner writes: counters, problems, notes and previews. It stores
nothing.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from socialpub.accounts.api_keys import OWNER
from socialpub.core.errors import Conflict, InvalidRequest
from socialpub.db.connection import Tx
from socialpub.db.tables import profile_rows
from socialpub.publishing.posts import idempotency, posts, retries
from socialpub.publishing.posts.retries import RetryOutlook
from socialpub.runtime import Runtime
from socialpub.web.dashboard import labels
from socialpub.web.dashboard.browser import security, times
from socialpub.web.dashboard.browser.visit import Visit, page
from socialpub.web.dashboard.compose import check, form_page, media
from socialpub.web.dashboard.compose import form as compose_form
from socialpub.web.dashboard.compose.check import CheckResult, Messages
from socialpub.web.dashboard.compose.context import FormContext, load_context
from socialpub.web.dashboard.compose.form import ComposeForm
from socialpub.web.dashboard.compose.media import FilesForm
from socialpub.web.dashboard.posts import submissions
from socialpub.web.dashboard.posts.actions import Post, load_post
from socialpub.web.dashboard.posts.submissions import SAVE, EqualPost
from socialpub.web.http.answer import Answer

COPIED = "This is a new post with the content of your form. Nothing is published yet."
FAILED = "This is a new post with the content of the one that failed. Change it before you publish it."
PROCESSING = "It can take a few minutes until TikTok has processed it."

Do = Callable[[ComposeForm, FormContext, CheckResult], Awaitable[Answer]]


@page()
async def show(rt: Runtime, visit: Visit) -> Answer:
    """Show an empty form, or one that begins with another post (`from`, `again`), a time (`at`) or profiles."""
    context = await load_context(visit, refresh=True)
    form, messages = ComposeForm(zone=times.zone_name(visit.zone)), Messages()
    if visit.query.text("again"):
        post = load_post(rt, visit.query.text("again"))
        outlook = retries.outlook(rt.reader, post["id"])
        if not outlook.certain:
            return visit.go(f"/posts/{post['id']}", alert=outlook.why)
        form, messages = _failed(rt, visit, post, outlook)
    elif visit.query.text("from"):
        post = load_post(rt, visit.query.text("from"))
        form = replace(compose_form.of_post(post, visit.zone, whole=False), twice=post["id"])
    known = [row.id for row in context.connected]
    wanted = [one for text in visit.query.texts("profiles") for one in text.split(",")] or form.profiles
    form = replace(form, profiles=tuple(one for one in known if one in wanted))
    if not form.profiles and len(known) == 1:
        form = replace(form, profiles=tuple(known))
    at = times.read_query_time(visit.query.text("at"), visit.zone)
    if at is not None:
        form = replace(form, when=compose_form.AT, time=at[0], which=at[1])
    return await form_page.show(visit, form, context, messages)


def _failed(rt: Runtime, visit: Visit, post: Post, outlook: RetryOutlook) -> tuple[ComposeForm, Messages]:
    """Return the content of a post that failed, for the accounts where it failed, and the reasons."""
    positions = {row.position for row in outlook.certain}
    failed = {**post, "deliveries": [one for at, one in enumerate(post["deliveries"]) if at in positions]}
    # An account that was connected again is another profile.
    found = (profile_rows.connected(rt.reader, row.provider, row.account_id) for row in outlook.certain)
    form = replace(
        compose_form.of_post(failed, visit.zone, whole=True),
        profiles=tuple(one for one in found if one),
        again=post["id"],
    )
    reasons = [f"{labels.list_accounts([one])}: {one['errorMessage']}" for one in failed["deliveries"]]
    return form.without_time(), Messages(notice=" ".join((FAILED, *reasons)))


@page(streams=True)
async def submit(rt: Runtime, visit: Visit) -> Answer | None:
    """Take the form: check it, change it (files, their order), or make a post of it."""
    received = await media.receive_form(rt, visit)
    if received is None:
        return None
    with received:
        form = compose_form.read(received.form, visit.zone)
        if received.form.text("do") == "copy":
            return await _copy(rt, visit, form, received)
        sent = [[name, text] for name, text in received.form.fields if name not in (security.CSRF_FIELD, "do")]
        key = submissions.request_key(form.form_id, visit.path, sent, received.fingerprints)
        try:
            kept = idempotency.find(rt, rt.reader, key, rt.now())
        except Conflict:
            return await _sent_before(rt, visit, form, received)
        if kept is not None and received.form.text("do") != "check":
            return visit.go(f"/posts/{kept.location}", status=submissions.SUBMITTED)

        async def publish(form: ComposeForm, context: FormContext, checked: CheckResult) -> Answer:
            assert checked.draft is not None
            draft = checked.draft
            confirmed = None if received.form.ticked("scripted") else form.twice

            def make(rt: Runtime, tx: Tx) -> str:
                if form.again:
                    return retries.retry_changed(rt, tx, form.again, draft, OWNER)
                return posts.create(rt, tx, draft, OWNER)

            try:
                post_id, is_new = await rt.write_soon(submissions.submit, key, make, draft, confirmed)
            except EqualPost as equal:
                asked = replace(form, twice=equal.post_id)
                messages = Messages(message=submissions.EQUAL, post_id=equal.post_id)
                return await form_page.show(visit, asked, context, messages, http_status=409)
            status = _accepted(form, context) if is_new else submissions.SUBMITTED
            return visit.go(f"/posts/{post_id}", status=status)

        return await handle(rt, visit, received, form, await load_context(visit), publish)


def _accepted(form: ComposeForm, context: FormContext) -> str:
    status = "The post is accepted and is being published."
    if form.scheduled_at is not None:
        status = f"The post is scheduled for {times.format_time(form.scheduled_at, times.find_zone(form.zone))}."
    return f"{status} {PROCESSING}" if "tiktok" in context.chosen_networks(form.profiles) else status


async def _sent_before(rt: Runtime, visit: Visit, form: ComposeForm, received: FilesForm) -> Answer:
    """Ask whether a form that was sent before with other content becomes another post."""
    form = replace(await media.attach_files(rt, form, received), form_id=submissions.new_id())
    messages = Messages(message=submissions.CHANGED)
    return await form_page.show(visit, form, await load_context(visit), messages, http_status=409)


async def _copy(rt: Runtime, visit: Visit, form: ComposeForm, received: FilesForm) -> Answer:
    """Begin another post with the form of a post that can no longer be edited."""
    form = await media.attach_files(rt, form, received)
    context = await load_context(visit, refresh=True)
    post = load_post(rt, received.form.text("editing"))
    wanted = {delivery["profileId"] for delivery in post["deliveries"]}
    form = replace(
        form,
        form_id=submissions.new_id(),
        profiles=tuple(row.id for row in context.connected if row.id in wanted),
        options={name: compose_form.reusable_options(name, given) for name, given in form.options.items()},
        disclosed=False,
        base=None,
    )
    if form.scheduled_at is None or form.scheduled_at <= rt.now():
        form = form.without_time()
    return await form_page.show(visit, form, context, Messages(notice=COPIED))


async def handle(
    rt: Runtime,
    visit: Visit,
    received: FilesForm,
    form: ComposeForm,
    context: FormContext,
    do: Do,
    *,
    editing: str | None = None,
    merge: Callable[[ComposeForm], ComposeForm] = lambda form: form,
) -> Answer:
    """Do what the pressed button asks for. `do` makes or changes the post; `merge` returns the whole post to check."""
    kept = await media.keep_files(rt, received)
    sent = received.form
    artifact_id, _, direction = sent.text("move").partition(":")
    form = media.attach(form, kept).moved(artifact_id, direction).without(sent.text("remove"))
    only_changed = sent.ticked("move") or sent.ticked("remove")
    if only_changed:
        checked = check.check_files(kept.refused)
    else:
        checked = await check.check(rt, merge(form), context, kept.refused, editing=editing)
    acts = sent.text("do").partition(":")[0] in ("publish", "anyway", SAVE) and not only_changed
    if acts and checked.may_be_done(anyway=sent.text("do") == "anyway"):
        try:
            return await do(form, context, checked)
        except InvalidRequest as error:
            checked = check.refused(error, form, context)
    # A check is answered; only a post that should have been made is refused.
    status = 400 if acts else 200
    return await form_page.show(visit, form, context, checked.messages, http_status=status, editing=editing)


# --- while the owner writes ------------------------------------------------------------------------------------------


@page()
async def check_live(rt: Runtime, visit: Visit) -> Answer:
    """Show counters, problems, notes and previews of the form as it is now."""
    form = compose_form.read(visit.form, visit.zone)
    messages = Messages()
    async with visit.request.state.live_checks:
        if form.profiles and (form.body.strip() or form.media):  # an empty form is no problem yet
            context = await load_context(visit, only=form.profiles)
            checked = await check.check(rt, form, context, editing=visit.form.text("editing"))
            messages = checked.messages
        previews = await form_page.form_previews(rt, form)
    return visit.show("_checked.html", form=form, messages=messages, previewed=previews)
