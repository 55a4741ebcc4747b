"""`/compose` and `/posts/{postId}/edit`: write, check, publish and edit a post.

`/compose/check` returns counters, problems, notes and previews to the page's script. This path does not store anything.

The edit form contains a digest of each initial value. Only fields with another digest are saved, so correcting a typo
changes neither the time nor the options. After a concurrent change, the page shows both versions and asks. If the post
can no longer be edited, the content of the form can become a new post.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import tzinfo
from typing import Any

from starlette.responses import Response

from socialpub.accounts.api_keys import OWNER
from socialpub.core.clock import parse, stamp
from socialpub.core.errors import Conflict, InvalidRequest
from socialpub.db.connection import Database
from socialpub.db.tables import artifact_rows, profile_rows
from socialpub.providers.registry import LABELS
from socialpub.publishing.posts import idempotency, posts, retries
from socialpub.publishing.posts.drafts import Change, Draft
from socialpub.publishing.posts.retries import RetryOutlook
from socialpub.runtime import Runtime
from socialpub.web.dashboard import labels
from socialpub.web.dashboard.browser import security, times
from socialpub.web.dashboard.browser.visit import Visit, page
from socialpub.web.dashboard.compose import check, form_page, media, option_fields
from socialpub.web.dashboard.compose import form as compose_form
from socialpub.web.dashboard.compose.form import AT, MEDIA, TEXT, TIME, ComposeForm, FormBase, mark
from socialpub.web.dashboard.compose.form_page import ComparedValue, FormContext, Messages, load_context
from socialpub.web.dashboard.compose.media import FilesForm
from socialpub.web.dashboard.posts import submissions
from socialpub.web.dashboard.posts.actions import Post, check_changeable, load_post
from socialpub.web.dashboard.posts.submissions import KEEP, SAVE, ChangedMeanwhile, EqualPost, PostVersion

COPIED = "This is a new post with the content of your form. Nothing is published yet."
FAILED = "This is a new post with the content of the failed post. Change it before you publish it."
PROCESSING = "TikTok may need a few minutes to process it."
EDITED = "The post is changed."
ONLY_SCHEDULED = "Only posts scheduled for the future can be edited."

Do = Callable[[ComposeForm, Draft], Awaitable[Response]]
Values = Mapping[str, Any]


@page()
async def show(rt: Runtime, visit: Visit) -> Response:
    """Show an empty form, or a form with the values of another post (`from`, `again`), a time or profiles."""
    context = await load_context(visit, refresh=True)
    form, messages = ComposeForm(zone=times.zone_name(visit.zone)), Messages()
    if visit.query.text("again"):
        post = load_post(rt, visit.query.text("again"))
        outlook = retries.load_outlook(rt.reader, post["id"])
        if not outlook.certain:
            return visit.go(f"/posts/{post['id']}", alert=outlook.why)
        form, messages = _failed(visit, post, outlook)
    elif visit.query.text("from"):
        post = load_post(rt, visit.query.text("from"))
        form = replace(compose_form.from_post(post, visit.zone, whole=False), twice=post["id"])
    known = [row.id for row in context.connected]
    wanted = [one for text in visit.query.texts("profiles") for one in text.split(",")] or form.profiles
    form = replace(form, profiles=tuple(one for one in known if one in wanted))
    if not form.profiles and len(known) == 1:
        form = replace(form, profiles=tuple(known))
    at = times.read_query_time(visit.query.text("at"), visit.zone)
    if at is not None:
        form = replace(form, when=compose_form.AT, time=at[0], which=at[1])
    return await form_page.show(visit, form, context, messages)


def _failed(visit: Visit, post: Post, outlook: RetryOutlook) -> tuple[ComposeForm, Messages]:
    """Return the content of the failed deliveries and the reasons."""
    positions = {row.position for row in outlook.certain}
    failed = {**post, "deliveries": [one for at, one in enumerate(post["deliveries"]) if at in positions]}
    # A reconnected account can have a new profile.
    found = (profile_rows.connected(visit.rt.reader, row.provider, row.account_id) for row in outlook.certain)
    form = replace(
        compose_form.from_post(failed, visit.zone, whole=True),
        profiles=tuple(one for one in found if one),
        again=post["id"],
    )
    reasons = [f"{labels.list_accounts([one])}: {one['errorMessage']}" for one in failed["deliveries"]]
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
            kept = idempotency.find(rt.reader, key, rt.now())
        except Conflict:
            return await _sent_before(visit, form, received)
        if kept is not None and received.form.text("do") != "check":
            return visit.go(f"/posts/{kept.location}", status=submissions.SUBMITTED)

        context = await load_context(visit)

        async def publish(form: ComposeForm, draft: Draft) -> Response:
            confirmed = None if received.form.ticked("scripted") else form.twice

            def make(rt: Runtime, tx: Database) -> str:
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

        return await _handle(visit, received, form, context, publish)


def _accepted(form: ComposeForm, context: FormContext) -> str:
    status = "The post is accepted and is being published."
    if form.scheduled_at is not None:
        status = f"The post is scheduled for {times.format_time(form.scheduled_at, times.find_zone(form.zone))}."
    return f"{status} {PROCESSING}" if "tiktok" in context.chosen_networks(form.profiles) else status


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
    form = replace(
        form,
        form_id=submissions.new_id(),
        profiles=tuple(row.id for row in context.connected if row.id in wanted),
        options={name: compose_form.reusable_options(name, given) for name, given in form.options.items()},
        disclosed=False,
        base=None,
    )
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
    merge: Callable[[ComposeForm], ComposeForm] = lambda form: form,
) -> Response:
    """Handle the pressed button. `do` creates or edits the post. `merge` returns the post to check."""
    kept = await media.keep_files(visit.rt, received)
    sent = received.form
    artifact_id, _, direction = sent.text("move").partition(":")
    form = media.attach(form, kept).moved(artifact_id, direction).without(sent.text("remove"))
    only_changed = sent.ticked("move") or sent.ticked("remove")
    if only_changed:
        checked = check.check_files(kept.refused)
    else:
        checked = await check.check_form(visit.rt, merge(form), context, kept.refused, editing=editing)
    acts = sent.text("do").partition(":")[0] in ("publish", "anyway", SAVE) and not only_changed
    if acts and checked.may_be_done(anyway=sent.text("do") == "anyway"):
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
        if form.profiles and (form.body.strip() or form.media):  # an empty form has no problems
            context = await load_context(visit, only=form.profiles)
            checked = await check.check_form(rt, form, context, editing=visit.form.text("editing"))
            messages = checked.messages
        previews = await form_page.form_previews(rt, form)
    return visit.show("_checked.html", form=form, messages=messages, previewed=previews)


# --- a scheduled post -------------------------------------------------------------------------------------------------


@page()
async def edit_form(rt: Runtime, visit: Visit) -> Response:
    post = load_post(rt, visit.params["postId"])
    form = compose_form.from_post(post, visit.zone, whole=True)
    context = await load_context(visit, refresh=True, only=form.profiles)
    try:
        check_changeable(rt, post)
    except Conflict:
        return await _ended(visit, form, context, post["id"], ONLY_SCHEDULED)
    form = replace(form, base=await _base(visit, post, form, context))
    return await form_page.show(visit, form, context, editing=post["id"])


@page(streams=True)
async def save(rt: Runtime, visit: Visit) -> Response:
    with await media.receive_form(rt, visit) as received:
        post = load_post(rt, visit.params["postId"])
        if received.form.text("do") == KEEP:
            return visit.go(f"/posts/{post['id']}", status=submissions.KEPT)
        present = compose_form.from_post(post, visit.zone, whole=True)
        form = replace(compose_form.read_form(received.form, visit.zone), profiles=present.profiles)
        context = await load_context(visit, only=form.profiles)
        base = form.base or await _base(visit, post, present, context)
        form = replace(form, base=base)
        try:
            check_changeable(rt, post)
        except Conflict:
            return await _ended(visit, await media.attach_files(rt, form, received), context, post["id"])

        async def change(form: ComposeForm, draft: Draft) -> Response:
            sent = _values(rt, form, context)
            fields = _changed(sent, base.marks)
            if not fields:
                return visit.go(f"/posts/{post['id']}", status=submissions.SAME)
            edit = _change_of(fields, sent, draft)
            try:
                await rt.write_soon(submissions.edit_version, post["id"], base.version, edit)
            except ChangedMeanwhile:
                return await _ask(visit, post["id"], form, base, context, sent, fields)
            except Conflict:
                return await _ended(visit, form, context, post["id"])
            return visit.go(f"/posts/{post['id']}", status=EDITED)

        def merge(form: ComposeForm) -> ComposeForm:
            return _merge(form, _changed(_values(rt, form, context), base.marks), present)

        return await _handle(visit, received, form, context, change, editing=post["id"], merge=merge)


async def _ask(
    visit: Visit,
    post_id: str,
    form: ComposeForm,
    base: FormBase,
    context: FormContext,
    sent: Values,
    fields: Sequence[str],
) -> Response:
    """Show both versions and ask which to keep."""
    rt = visit.rt
    post = load_post(rt, post_id)
    present = await form_page.untouched(visit, compose_form.from_post(post, visit.zone, whole=True), context)
    now = _values(rt, present, context)
    if all(mark(sent.get(name)) == mark(now.get(name)) for name in fields):
        return visit.go(f"/posts/{post_id}", status=EDITED)  # the same form was submitted twice
    zone = times.find_zone(form.zone)
    compared = [
        ComparedValue(
            _label(name),
            _in_words(rt, name, now.get(name), zone),
            _in_words(rt, name, sent.get(name), zone),
            name in fields,
        )
        for name in dict.fromkeys((*fields, *_changed(now, base.marks)))
    ]
    messages = Messages(message=submissions.CHANGED_MEANWHILE, compared=compared, version=PostVersion.of(post))
    # “Save my changes” saves the shown form. Only its changed fields keep their initial digest.
    marks = {name: digest for name, digest in _marks(now).items() if name not in fields}
    marks |= {name: digest for name, digest in base.marks.items() if name in fields}
    form = replace(_merge(form, fields, present), base=replace(base, marks=marks))
    return await form_page.show(visit, form, context, messages, http_status=409, editing=post_id)


async def _ended(
    visit: Visit, form: ComposeForm, context: FormContext, post_id: str, more: str = "Nothing is saved."
) -> Response:
    why = submissions.why_ended(load_post(visit.rt, post_id)["status"])
    messages = Messages(message=f"{why} {more}", post_id=post_id, ended=True)
    return await form_page.show(visit, form, context, messages, http_status=409, editing=post_id)


# --- which fields a form changes -------------------------------------------------------------------------------------


async def _base(visit: Visit, post: Post, form: ComposeForm, context: FormContext) -> FormBase:
    begins = await form_page.untouched(visit, form, context)
    return FormBase(PostVersion.of(post), _marks(_values(visit.rt, begins, context)))


def _values(rt: Runtime, form: ComposeForm, context: FormContext) -> Values:
    """Return the normalized value of each field. Missing options are left out."""
    time = form.scheduled_at
    found: dict[str, Any] = {
        TEXT: form.body.replace("\r\n", "\n").replace("\r", "\n").strip(),
        TIME: "" if form.when != AT else stamp(time) if time else f"{form.time} {form.zone}",
        MEDIA: [[item.artifact_id, _one_line(item.alt)] for item in form.media],
    }
    given = form.sent_options(context.networks, only_photos=media.only_photos(rt, form))
    for network, options in given.items():
        for key, value in options.items():
            found[f"{option_fields.PREFIX}{network}.{key}"] = _one_line(value) if isinstance(value, str) else value
    return found


def _one_line(text: str) -> str:
    return text.replace("\r", "").replace("\n", "").strip()


def _marks(of: Values) -> dict[str, str]:
    return {name: mark(value) for name, value in of.items()}


def _changed(now: Values, was: Mapping[str, str]) -> list[str]:
    """Return the fields whose digest differs from the one in `was`."""
    return [name for name in dict.fromkeys((*now, *was)) if mark(now.get(name)) != was.get(name, "")]


def _change_of(fields: Collection[str], sent: Values, draft: Draft) -> Change:
    """Return the change of these fields. `draft` contains all fields of the form."""
    names = {TEXT: "body", TIME: "scheduled_at", MEDIA: "media"}
    options: dict[str, dict[str, Any]] = {}
    for network, key in map(_option, fields):
        if network:
            options.setdefault(network, {})[key] = sent.get(f"{option_fields.PREFIX}{network}.{key}")
    given = {names[field] for field in fields if field in names} | ({"options"} if options else set())
    return Change(frozenset(given), draft.body, draft.scheduled_at, draft.media, single_options=options)


def _merge(form: ComposeForm, fields: Collection[str], present: ComposeForm) -> ComposeForm:
    """Return the current post with these fields of the form."""
    result = replace(
        form,
        body=form.body if TEXT in fields else present.body,
        media=form.media if MEDIA in fields else present.media,
    )
    if TIME not in fields:
        result = replace(result, when=present.when, time=present.time, zone=present.zone, which=present.which)
    options = {network: dict(present.options.get(network, {})) for network in LABELS}
    for network, key in map(_option, fields):
        given = form.options.get(network, {})
        if key in given:
            options[network][key] = given[key]
        elif network:
            options[network].pop(key, None)
    return replace(result, options=options)


def _option(name: str) -> tuple[str, str]:
    """Return the network and key of an option, or empty texts for another field."""
    network, _, key = name.removeprefix(option_fields.PREFIX).partition(".")
    return (network, key) if name.startswith(option_fields.PREFIX) and network in LABELS else ("", "")


# --- fields in words -------------------------------------------------------------------------------------------------


def _label(name: str) -> str:
    network, key = _option(name)
    if network:
        return f"{LABELS[network]}, {option_fields.OPTION_LABELS.get(key, key)}"
    return {TEXT: "Text", TIME: "Time", MEDIA: "Media"}.get(name, name)


def _in_words(rt: Runtime, name: str, value: Any, zone: tzinfo) -> str:
    if name == TEXT:
        return str(value) or "No text"
    if name == TIME:
        return times.format_exactly(parse(value), zone) if value else "Now"
    if name == MEDIA:
        return "; ".join(_medium(rt, *item) for item in value or ()) or "None"
    if value is None:
        return "Not set"
    key = name.rpartition(".")[2]
    return _medium(rt, str(value), "") if key in option_fields.ARTIFACTS else option_fields.value_text(key, value)


def _medium(rt: Runtime, artifact_id: str, alt: str) -> str:
    row = artifact_rows.find(rt.reader, artifact_id)
    file_name = "removed file" if row is None else row.file_name
    return f"{file_name} (alt text: {alt})" if alt else str(file_name)
