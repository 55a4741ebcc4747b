"""`/compose` and `/posts/{postId}/edit`: write, check, publish and edit a post.

`/compose/check` returns counters, problems, notes and previews to the page's script. This path does not store anything.

An edit saves the fields that differ from the post, so correcting a typo changes neither the time nor the options.
If the post was changed meanwhile, nothing is saved: the page shows the text of the post and keeps the form.
If the post can no longer be edited, the content of the form can become a new post.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from starlette.responses import Response

from socialpub.core.errors import Conflict, InvalidRequest
from socialpub.db.tables import profile_rows
from socialpub.publishing.posts import idempotency, retries
from socialpub.publishing.posts.drafts import Draft
from socialpub.publishing.posts.retries import RetryOutlook
from socialpub.runtime import Runtime
from socialpub.web.dashboard import labels
from socialpub.web.dashboard.browser import security, times
from socialpub.web.dashboard.browser.visit import Visit, page
from socialpub.web.dashboard.compose import check, form_page, media
from socialpub.web.dashboard.compose import form as compose_form
from socialpub.web.dashboard.compose.form import ComposeForm
from socialpub.web.dashboard.compose.form_page import FormContext, Messages, load_context
from socialpub.web.dashboard.compose.media import FilesForm
from socialpub.web.dashboard.posts import submissions
from socialpub.web.dashboard.posts.actions import Post, check_changeable, load_post
from socialpub.web.dashboard.posts.submissions import ChangedMeanwhile, EqualPost

COPIED = "This is a new post with the content of your form. Nothing is published yet."
FAILED = "This is a new post with the content of the failed post. Change it before you publish it."
PROCESSING = "TikTok may need a few minutes to process it."
EDITED = "The post is changed."
SAVE_AGAIN = "The form still contains your version. To replace the post with it, press “Save” again."
ONLY_SCHEDULED = "Only posts scheduled for the future can be edited."

Do = Callable[[ComposeForm, Draft], Awaitable[Response]]


@page()
async def show(rt: Runtime, visit: Visit) -> Response:
    """Show an empty form, or a form with the values of another post (`from`, `again`), a time or profiles."""
    context = await load_context(visit, refresh=True)
    form, messages = ComposeForm(zone=times.zone_name(visit.zone)), Messages()
    if visit.query.text("again"):
        post = load_post(rt, visit.query.text("again"))
        outlook = retries.load_outlook(rt.db, post["id"])
        if not outlook.certain:
            return visit.go(f"/posts/{post['id']}", alert=outlook.why)
        form, messages = _failed(visit, post, outlook)
    elif visit.query.text("from"):
        post = load_post(rt, visit.query.text("from"))
        form = replace(compose_form.from_post(post, visit.zone, whole=False), equal_post=post["id"])
    profile_ids = [row.id for row in context.connected]
    wanted = [
        profile_id for text in visit.query.texts("profiles") for profile_id in text.split(",")
    ] or form.draft.profiles
    form = form.with_draft(profiles=tuple(profile_id for profile_id in profile_ids if profile_id in wanted))
    if not form.draft.profiles and len(profile_ids) == 1:
        form = form.with_draft(profiles=tuple(profile_ids))
    at = times.read_query_time(visit.query.text("at"), visit.zone)
    if at is not None:
        form = replace(form, when=compose_form.AT, time=at[0], which=at[1])
    return await form_page.show(visit, form, context, messages)


def _failed(visit: Visit, post: Post, outlook: RetryOutlook) -> tuple[ComposeForm, Messages]:
    """Return the content of the failed deliveries and the reasons."""
    positions = {row.position for row in outlook.certain}
    failed = {**post, "deliveries": [delivery for at, delivery in enumerate(post["deliveries"]) if at in positions]}
    # A reconnected account can have a new profile.
    connected = (profile_rows.connected(visit.rt.db, row.provider, row.account_id) for row in outlook.certain)
    form = compose_form.from_post(failed, visit.zone, whole=True)
    form = replace(
        form.with_draft(profiles=tuple(profile_id for profile_id in connected if profile_id)), failed_post=post["id"]
    )
    reasons = [f"{labels.list_accounts([delivery])}: {delivery['errorMessage']}" for delivery in failed["deliveries"]]
    return form.without_time(), Messages(notice=" ".join((FAILED, *reasons)))


@page(streams=True)
async def submit(rt: Runtime, visit: Visit) -> Response:
    with await media.receive_form(rt, visit) as received:
        form = compose_form.read_form(received.form, visit.zone)
        if received.form.text("do") == "copy":
            return await _copy(visit, form, received)
        sent = [[name, text] for name, text in received.form.fields if name not in (security.CSRF_FIELD, "do")]
        key = submissions.request_key(form.form_id, visit.path, sent, received.fingerprints)
        try:
            stored = idempotency.find(rt.db, key, rt.now())
        except Conflict:
            return await _sent_before(visit, form, received)
        if stored is not None and received.form.text("do") != "check":
            return visit.go(f"/posts/{stored.location}", status=submissions.SUBMITTED)

        context = await load_context(visit)

        async def publish(form: ComposeForm, draft: Draft) -> Response:
            confirmed = None if received.form.ticked("scripted") else form.equal_post
            try:
                post_id, is_new = await rt.write_soon(submissions.submit, key, draft, confirmed, form.failed_post)
            except EqualPost as equal:
                asked = replace(form, equal_post=equal.post_id)
                messages = Messages(message=submissions.EQUAL, post_id=equal.post_id)
                return await form_page.show(visit, asked, context, messages, http_status=409)
            status = _accepted(form, context) if is_new else submissions.SUBMITTED
            return visit.go(f"/posts/{post_id}", status=status)

        return await _handle(visit, received, form, context, publish)


def _accepted(form: ComposeForm, context: FormContext) -> str:
    status = "The post is accepted and is being published."
    if form.scheduled_at is not None:
        status = f"The post is scheduled for {times.format_time(form.scheduled_at, times.find_zone(form.zone))}."
    return f"{status} {PROCESSING}" if "tiktok" in context.chosen_networks(form.draft.profiles) else status


async def _sent_before(visit: Visit, form: ComposeForm, received: FilesForm) -> Response:
    """Ask whether a resubmitted form with new content creates another post."""
    form = replace(await media.attach_files(visit.rt, form, received), form_id=submissions.new_id())
    messages = Messages(message=submissions.CHANGED)
    return await form_page.show(visit, form, await load_context(visit), messages, http_status=409)


async def _copy(visit: Visit, form: ComposeForm, received: FilesForm) -> Response:
    """Show a new form with the content of a post that can no longer be edited."""
    form = await media.attach_files(visit.rt, form, received)
    context = await load_context(visit, refresh=True)
    post = load_post(visit.rt, received.form.text("editing"))
    wanted = {delivery["profileId"] for delivery in post["deliveries"]}
    form = form.with_draft(
        profiles=tuple(row.id for row in context.connected if row.id in wanted),
        options={name: compose_form.reusable_options(name, of_network) for name, of_network in form.options.items()},
    )
    form = replace(form, form_id=submissions.new_id(), disclosed=False, version="")
    if form.scheduled_at is None or form.scheduled_at <= visit.now:
        form = form.without_time()
    return await form_page.show(visit, form, context, Messages(notice=COPIED))


async def _handle(
    visit: Visit,
    received: FilesForm,
    form: ComposeForm,
    context: FormContext,
    do: Do,
    *,
    editing: str | None = None,
) -> Response:
    """Handle the pressed button. `do` creates or edits the post."""
    artifacts = await media.keep_files(visit.rt, received)
    sent = received.form
    artifact_id, _, direction = sent.text("move").partition(":")
    form = media.attach(form, artifacts).moved(artifact_id, direction).without(sent.text("remove"))
    only_changed = sent.ticked("move") or sent.ticked("remove")
    if only_changed:
        checked = check.check_files(artifacts.refused)
    else:
        checked = await check.check_form(visit.rt, form, context, artifacts.refused, editing=editing)
    acts = sent.text("do") in ("publish", "anyway") and not only_changed
    if acts and checked.is_acceptable(anyway=sent.text("do") == "anyway"):
        assert checked.draft is not None
        try:
            return await do(form, checked.draft)
        except InvalidRequest as error:
            checked = check.refused(error, form, context)
    # “Check” always succeeds. Only a post that was not accepted is an error.
    status = 400 if acts else 200
    return await form_page.show(visit, form, context, checked.messages, http_status=status, editing=editing)


# --- while the owner writes ------------------------------------------------------------------------------------------


@page()
async def check_live(rt: Runtime, visit: Visit) -> Response:
    form = compose_form.read_form(visit.form, visit.zone)
    messages = Messages()
    async with visit.request.app.state.live_checks:
        if form.draft.profiles and (form.text or form.draft.media):  # an empty form has no problems
            context = await load_context(visit, only=form.draft.profiles)
            checked = await check.check_form(rt, form, context, editing=visit.form.text("editing"))
            messages = checked.messages
        previews = await form_page.form_previews(rt, form)
    return visit.show("_checked.html", form=form, messages=messages, previewed=previews)


# --- a scheduled post -------------------------------------------------------------------------------------------------


@page()
async def edit_form(rt: Runtime, visit: Visit) -> Response:
    post = load_post(rt, visit.params["postId"])
    form = compose_form.from_post(post, visit.zone, whole=True)
    context = await load_context(visit, refresh=True, only=form.draft.profiles)
    try:
        check_changeable(rt, post)
    except Conflict:
        return await _ended(visit, form, context, post["id"], ONLY_SCHEDULED)
    form = replace(form, version=post["updatedAt"])
    return await form_page.show(visit, form, context, editing=post["id"])


@page(streams=True)
async def save(rt: Runtime, visit: Visit) -> Response:
    with await media.receive_form(rt, visit) as received:
        post = load_post(rt, visit.params["postId"])
        form = compose_form.read_form(received.form, visit.zone)
        form = form.with_draft(profiles=tuple(delivery["profileId"] for delivery in post["deliveries"]))
        context = await load_context(visit, only=form.draft.profiles)
        try:
            check_changeable(rt, post)
        except Conflict:
            return await _ended(visit, await media.attach_files(rt, form, received), context, post["id"])

        async def change(form: ComposeForm, draft: Draft) -> Response:
            changes = form.changed_fields(draft, post, only_photos=media.only_photos(rt, form))
            if not changes:  # with another version, the same form was submitted twice
                status = submissions.SAME if form.version == post["updatedAt"] else EDITED
                return visit.go(f"/posts/{post['id']}", status=status)
            try:
                await rt.write_soon(submissions.edit_version, post["id"], form.version, replace(draft, given=changes))
            except ChangedMeanwhile:
                present = load_post(rt, post["id"])
                messages = Messages(message=f"{submissions.CHANGED_MEANWHILE} {SAVE_AGAIN}", present=present)
                present_form = replace(form, version=present["updatedAt"])
                return await form_page.show(visit, present_form, context, messages, http_status=409, editing=post["id"])
            except Conflict:
                return await _ended(visit, form, context, post["id"])
            return visit.go(f"/posts/{post['id']}", status=EDITED)

        return await _handle(visit, received, form, context, change, editing=post["id"])


async def _ended(
    visit: Visit, form: ComposeForm, context: FormContext, post_id: str, more: str = "Nothing is saved."
) -> Response:
    why = submissions.why_ended(load_post(visit.rt, post_id)["status"])
    messages = Messages(message=f"{why} {more}", post_id=post_id, ended=True)
    return await form_page.show(visit, form, context, messages, http_status=409, editing=post_id)
