"""`/posts/{id}/edit`: a scheduled post is edited in the form that it was made in.

The page carries a mark of each value that the form begins with. A field counts as changed when the sent value has
another mark. Only changed fields are saved: a corrected typo leaves the time and the options as they are. If the post
was changed meanwhile, the page shows both versions and asks. If the post can no longer be edited, the form comes back,
and its content can become another post.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import tzinfo
from typing import Any

from socialpub.core.clock import parse, stamp
from socialpub.core.errors import Conflict
from socialpub.db.tables import artifact_rows
from socialpub.providers.registry import LABELS, PROVIDERS
from socialpub.publishing.posts.drafts import Change, Draft
from socialpub.runtime import Runtime
from socialpub.web.dashboard.browser import times
from socialpub.web.dashboard.browser.visit import Visit, page
from socialpub.web.dashboard.compose import form as compose_form
from socialpub.web.dashboard.compose import form_page, media, option_fields, views
from socialpub.web.dashboard.compose.check import CheckResult, ComparedValue, Messages
from socialpub.web.dashboard.compose.context import FormContext, load_context
from socialpub.web.dashboard.compose.form import AT, MEDIA, TEXT, TIME, ComposeForm, FormBase, mark
from socialpub.web.dashboard.posts import submissions
from socialpub.web.dashboard.posts.actions import Post, check_changeable, load_post
from socialpub.web.dashboard.posts.submissions import KEEP, ChangedMeanwhile, PostVersion
from socialpub.web.http.answer import Answer

EDITED = "The post is changed."
ONLY_SCHEDULED = "Only posts scheduled for the future can be edited."

Values = Mapping[str, Any]
"""The value of each field of a form, by the field's name."""


@page()
async def edit_form(rt: Runtime, visit: Visit) -> Answer:
    """Show the form of a scheduled post."""
    post = load_post(rt, visit.params["postId"])
    form = compose_form.of_post(post, visit.zone, whole=True)
    context = await load_context(visit, refresh=True, only=form.profiles)
    try:
        check_changeable(rt, post)
    except Conflict:
        return await _ended(visit, form, context, post["id"], ONLY_SCHEDULED)
    form = replace(form, base=await _base(visit, post, form, context))
    return await form_page.show(visit, form, context, editing=post["id"])


@page(streams=True)
async def save(rt: Runtime, visit: Visit) -> Answer | None:
    """Take the form of a scheduled post."""
    received = await media.receive_form(rt, visit)
    if received is None:
        return None
    with received:
        post = load_post(rt, visit.params["postId"])
        if received.form.text("do") == KEEP:
            return visit.go(f"/posts/{post['id']}", status=submissions.KEPT)
        present = compose_form.of_post(post, visit.zone, whole=True)
        form = replace(compose_form.read(received.form, visit.zone), profiles=present.profiles)
        context = await load_context(visit, only=form.profiles)
        if form.base is None:
            form = replace(form, base=await _base(visit, post, present, context))
        try:
            check_changeable(rt, post)
        except Conflict:
            return await _ended(visit, await media.attach_files(rt, form, received), context, post["id"])

        async def change(form: ComposeForm, context: FormContext, checked: CheckResult) -> Answer:
            assert checked.draft is not None
            return await _save(rt, visit, post["id"], form, context, checked.draft)

        def merge(form: ComposeForm) -> ComposeForm:
            return _merge(form, _changed(_values(rt, form, context), _marks_of_base(form)), present)

        return await views.handle(rt, visit, received, form, context, change, editing=post["id"], merge=merge)


async def _save(
    rt: Runtime, visit: Visit, post_id: str, form: ComposeForm, context: FormContext, draft: Draft
) -> Answer:
    sent = _values(rt, form, context)
    fields = _changed(sent, _marks_of_base(form))
    if not fields:
        return visit.go(f"/posts/{post_id}", status=submissions.SAME)
    assert form.base is not None
    try:
        await rt.write_soon(submissions.edit_version, post_id, form.base.version, _change_of(fields, sent, draft))
    except ChangedMeanwhile:
        return await _ask(rt, visit, post_id, form, form.base, context, fields)
    except Conflict:
        return await _ended(visit, form, context, post_id)
    return visit.go(f"/posts/{post_id}", status=EDITED)


async def _ask(
    rt: Runtime,
    visit: Visit,
    post_id: str,
    form: ComposeForm,
    base: FormBase,
    context: FormContext,
    fields: Sequence[str],
) -> Answer:
    """Show both versions, and ask which one counts."""
    post = load_post(rt, post_id)
    present = await form_page.untouched(visit, compose_form.of_post(post, visit.zone, whole=True), context)
    sent, now = _values(rt, form, context), _values(rt, present, context)
    if all(mark(sent.get(name)) == mark(now.get(name)) for name in fields):
        return visit.go(f"/posts/{post_id}", status=EDITED)  # the same form, sent twice
    zone = times.find_zone(form.zone)
    ours, theirs = _changed(sent, base.marks), _changed(now, base.marks)
    compared = [
        ComparedValue(
            _label(name),
            _in_words(rt, name, now.get(name), zone),
            _in_words(rt, name, sent.get(name), zone),
            name in ours,
        )
        for name in dict.fromkeys((*ours, *theirs))
    ]
    messages = Messages(message=submissions.CHANGED_MEANWHILE, compared=compared, version=PostVersion.of(post))
    # The form shows what “Save my changes” saves. Only the fields that it changes keep the mark that it began with.
    marks = {name: digest for name, digest in _marks(now).items() if name not in fields}
    marks |= {name: digest for name, digest in base.marks.items() if name in fields}
    form = replace(_merge(form, fields, present), base=replace(base, marks=marks))
    return await form_page.show(visit, form, context, messages, http_status=409, editing=post_id)


async def _ended(
    visit: Visit, form: ComposeForm, context: FormContext, post_id: str, more: str = "Nothing is saved."
) -> Answer:
    """Show the form of a post that can no longer be edited."""
    why = submissions.why_ended(load_post(visit.rt, post_id)["status"])
    messages = Messages(message=f"{why} {more}", post_id=post_id, ended=True)
    return await form_page.show(visit, form, context, messages, http_status=409, editing=post_id)


# --- which fields a form changes -------------------------------------------------------------------------------------


async def _base(visit: Visit, post: Post, form: ComposeForm, context: FormContext) -> FormBase:
    """Return what a form that begins with this post carries."""
    begins = await form_page.untouched(visit, form, context)
    return FormBase(PostVersion.of(post), _marks(_values(visit.rt, begins, context)))


def _marks_of_base(form: ComposeForm) -> Mapping[str, str]:
    assert form.base is not None
    return form.base.marks


def _values(rt: Runtime, form: ComposeForm, context: FormContext) -> Values:
    """Return the value of each field, however a browser writes it. Options that are not given are left out."""
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
    """Return the fields whose value has another mark than before."""
    return [name for name in dict.fromkeys((*now, *was)) if mark(now.get(name)) != was.get(name, "")]


def _change_of(fields: Collection[str], sent: Values, draft: Draft) -> Change:
    """Return the edit of these fields alone. `draft` is the whole post of the form."""
    names = {TEXT: "body", TIME: "scheduled_at", MEDIA: "media"}
    options: dict[str, dict[str, Any]] = {}
    for network, key in map(_option, fields):
        if network:
            options.setdefault(network, {})[key] = sent.get(f"{option_fields.PREFIX}{network}.{key}")
    given = {names[field] for field in fields if field in names} | ({"options"} if options else set())
    return Change(frozenset(given), draft.body, draft.scheduled_at, draft.media, single_options=options)


def _merge(form: ComposeForm, fields: Collection[str], present: ComposeForm) -> ComposeForm:
    """Return the present post with these fields of the form."""
    result = replace(
        form,
        body=form.body if TEXT in fields else present.body,
        media=form.media if MEDIA in fields else present.media,
    )
    if TIME not in fields:
        result = replace(result, when=present.when, time=present.time, zone=present.zone, which=present.which)
    options = {network: dict(present.options.get(network, {})) for network in PROVIDERS}
    for network, key in map(_option, fields):
        given = form.options.get(network, {})
        if key in given:
            options[network][key] = given[key]
        elif network:
            options[network].pop(key, None)
    return replace(result, options=options)


def _option(name: str) -> tuple[str, str]:
    """Return the network and the key of an option; empty texts for another field."""
    network, _, key = name.removeprefix(option_fields.PREFIX).partition(".")
    return (network, key) if name.startswith(option_fields.PREFIX) and network in LABELS else ("", "")


# --- fields in words -------------------------------------------------------------------------------------------------


def _label(name: str) -> str:
    """Return the field's label on the page."""
    network, key = _option(name)
    if network:
        return f"{LABELS[network]}, {option_fields.OPTION_LABELS.get(key, key)}"
    return {TEXT: "Text", TIME: "Time", MEDIA: "Media"}.get(name, name)


def _in_words(rt: Runtime, name: str, value: Any, zone: tzinfo) -> str:
    """Return the value of a field as a person reads it."""
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
    file_name = "a file that was removed" if row is None else row.file_name
    return f"{file_name} (alt text: {alt})" if alt else str(file_name)
