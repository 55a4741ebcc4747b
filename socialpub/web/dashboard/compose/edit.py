"""What a form changes of the post that it was made from.

The page carries a mark of each value that the form begins with. A field counts as changed when what is sent has another
mark, so that an edit touches nothing else: a corrected typo leaves the time and the options as they are.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Any

from socialpub.core.clock import parse, stamp
from socialpub.core.errors import Conflict
from socialpub.providers.registry import LABELS, PROVIDERS
from socialpub.publishing.media import uploads
from socialpub.publishing.posts import posts
from socialpub.publishing.posts.drafts import Change, Draft
from socialpub.runtime import Runtime
from socialpub.web.dashboard.browser import times
from socialpub.web.dashboard.browser.visit import Visit, page, refusal
from socialpub.web.dashboard.compose import context, form, form_page, media, option_fields, views
from socialpub.web.dashboard.compose import form as compose_form
from socialpub.web.dashboard.compose.check import CheckResult, ComparedValue, Messages
from socialpub.web.dashboard.compose.context import FormContext
from socialpub.web.dashboard.compose.form import AT, MEDIA, TEXT, TIME, ComposeForm, FormBase
from socialpub.web.dashboard.posts import submissions
from socialpub.web.dashboard.posts.submissions import KEEP, ChangedMeanwhile, PostVersion
from socialpub.web.http.answer import Answer

Values = Mapping[str, Any]


def values(form: ComposeForm, networks: Collection[str], *, only_photos: bool) -> Values:
    """The value of each field, in one form however a browser writes it. Options that are not given are left out."""
    time = form.scheduled_at
    found: dict[str, Any] = {
        TEXT: form.body.replace("\r\n", "\n").replace("\r", "\n").strip(),
        TIME: "" if form.when != AT else stamp(time) if time else f"{form.time} {form.zone}",
        MEDIA: [[item.artifact_id, _one_line(item.alt)] for item in form.media],
    }
    for network, options in form.sent_options(networks, only_photos=only_photos).items():
        for key, value in options.items():
            found[f"{option_fields.PREFIX}{network}.{key}"] = _one_line(value) if isinstance(value, str) else value
    return found


def marks(of: Values) -> dict[str, str]:
    """A short digest of each value."""
    return {name: form.mark(value) for name, value in of.items()}


def changed(now: Values, was: Mapping[str, str]) -> list[str]:
    """The fields whose value is another one than that with this mark."""
    return [name for name in dict.fromkeys((*now, *was)) if form.mark(now.get(name)) != was.get(name, "")]


def change_of(fields: Collection[str], sent: Values, draft: Draft) -> Change:
    """The edit of these fields alone. `draft` is the whole post as the form has it."""
    names = {TEXT: "body", TIME: "scheduled_at", MEDIA: "media"}
    options: dict[str, dict[str, Any]] = {}
    for network, key in map(_option, fields):
        if network:
            options.setdefault(network, {})[key] = sent.get(f"{option_fields.PREFIX}{network}.{key}")
    given = {names[field] for field in fields if field in names} | ({"options"} if options else set())
    return Change(frozenset(given), draft.body, draft.scheduled_at, draft.media, single_options=options)


def merged(form: ComposeForm, fields: Collection[str], present: ComposeForm) -> ComposeForm:
    """The post as it is at present with these fields of the form."""
    result = replace(
        form,
        body=form.body if TEXT in fields else present.body,
        media=form.media if MEDIA in fields else present.media,
    )
    if TIME not in fields:
        result = replace(result, when=present.when, time=present.time, zone=present.zone, which=present.which)
    options = {network: dict(present.options.get(network, {})) for network in PROVIDERS}
    for network, key in map(_option, fields):
        if not network:
            continue
        given = form.options.get(network, {})
        if key in given:
            options[network][key] = given[key]
        else:
            options[network].pop(key, None)
    return replace(result, options=options)


@dataclass(frozen=True, slots=True)
class ComparedField:
    """One field of the two versions: as the post has it now, and as the form has it."""

    name: str
    label: str
    is_ours: bool
    """Whether the form changes it."""


def compare_fields(was: Mapping[str, str], sent: Values, present: Values) -> list[ComparedField]:
    """The fields that either version has changed."""
    ours, theirs = changed(sent, was), changed(present, was)
    return [ComparedField(name, label_of(name), name in ours) for name in dict.fromkeys((*ours, *theirs))]


def differing(fields: Sequence[str], sent: Values, present: Values) -> list[str]:
    """Those of these fields in which the form differs from the post as it is at present."""
    return [name for name in fields if form.mark(sent.get(name)) != form.mark(present.get(name))]


def label_of(name: str) -> str:
    """What the field is called on the page."""
    network, key = _option(name)
    if network:
        return f"{LABELS[network]}, {option_fields.OPTION_LABELS.get(key, key)}"
    return {TEXT: "Text", TIME: "Time", MEDIA: "Media"}.get(name, name)


def _option(name: str) -> tuple[str, str]:
    """The network and the key of an option; empty for another field."""
    network, _, key = name.removeprefix(option_fields.PREFIX).partition(".")
    return (network, key) if name.startswith(option_fields.PREFIX) and network in LABELS else ("", "")


def _one_line(text: str) -> str:
    """As a field of one line sends it."""
    return text.replace("\r", "").replace("\n", "").strip()


# MERGED from web/dashboard/compose_edit.py: `/posts/{id}/edit`: a scheduled post is edited in the form that it was

EDITED = "The post is changed."
ONLY_SCHEDULED = "Only posts scheduled for the future can be edited."


@page()
async def edit_form(rt: Runtime, visit: Visit) -> Answer:
    """The form of a scheduled post."""
    post = views.load_post(rt, visit.params["postId"])
    form = compose_form.of_post(post, visit.zone, whole=True)
    around = await context.load_context(rt, refresh=True, only=form.profiles)
    try:
        posts.check_changeable(post["status"], post.get("scheduledAt"), rt.stamp())
    except Conflict:
        return await _ended(rt, visit, form, around, post["id"], ONLY_SCHEDULED)
    form = replace(form, base=await _base(rt, post, form, around))
    return await form_page.show(rt, visit, form, around, editing=post["id"])


@page(streams=True)
async def save(rt: Runtime, visit: Visit) -> Answer | None:
    """The form of a scheduled post was sent."""
    received = await media.receive_form(rt, visit, lambda error: refusal(visit, error))
    if received is None:
        return None
    with received:
        post = views.load_post(rt, visit.params["postId"])
        if received.form.text("do") == KEEP:
            return visit.go(f"/posts/{post['id']}", status=submissions.KEPT)
        present = compose_form.of_post(post, visit.zone, whole=True)
        form = replace(compose_form.read(received.form, visit.zone), profiles=present.profiles)
        around = await context.load_context(rt, refresh=False, only=form.profiles)
        if form.base is None:
            form = replace(form, base=await _base(rt, post, present, around))
        try:
            posts.check_changeable(post["status"], post.get("scheduledAt"), rt.stamp())
        except Conflict:
            files = await media.keep_files(rt, received)
            return await _ended(rt, visit, form.with_uploads(files.artifact_ids, files.of_options), around, post["id"])

        async def change(form: ComposeForm, around: FormContext, checked: CheckResult) -> Answer:
            return await _save(rt, visit, post["id"], form, around, checked)

        def judged(form: ComposeForm) -> ComposeForm:
            return merged(form, _changed_fields(rt, form, around), present)

        return await views.handle(rt, visit, received, form, around, change, editing=post["id"], judged=judged)


async def _save(
    rt: Runtime, visit: Visit, post_id: str, form: ComposeForm, around: FormContext, checked: CheckResult
) -> Answer:
    assert checked.draft is not None
    assert form.base is not None
    fields = _changed_fields(rt, form, around)
    if not fields:
        return visit.go(f"/posts/{post_id}", status=submissions.SAME)
    change = change_of(fields, _form_values(rt, form, around), checked.draft)
    try:
        await rt.write_soon(submissions.edit_version, post_id, form.base.version, change)
    except ChangedMeanwhile:
        return await _ask(rt, visit, post_id, form, around, fields)
    except Conflict:
        return await _ended(rt, visit, form, around, post_id)
    return visit.go(f"/posts/{post_id}", status=EDITED)


async def _ask(
    rt: Runtime, visit: Visit, post_id: str, form: ComposeForm, around: FormContext, fields: Sequence[str]
) -> Answer:
    """Both versions, and which of them is wanted."""
    post = views.load_post(rt, post_id)
    present = await form_page.untouched(rt, compose_form.of_post(post, visit.zone, whole=True), around)
    sent, now = _form_values(rt, form, around), _form_values(rt, present, around)
    if not differing(fields, sent, now):
        return visit.go(f"/posts/{post_id}", status=EDITED)  # the same form, sent twice
    assert form.base is not None
    zone = times.zone_named(form.zone)
    compared = [
        ComparedValue(
            one.label,
            _in_words(rt, one.name, now.get(one.name), zone),
            _in_words(rt, one.name, sent.get(one.name), zone),
            one.is_ours,
        )
        for one in compare_fields(form.base.marks, sent, now)
    ]
    said = Messages(message=submissions.CHANGED_MEANWHILE, compared=compared, version=PostVersion.of(post))
    # The form shows what “Save my changes” saves. Only the fields that it changes keep the mark that it began with.
    kept = {name: mark for name, mark in form.base.marks.items() if name in fields}
    theirs = {name: mark for name, mark in marks(now).items() if name not in fields}
    form = replace(merged(form, fields, present), base=replace(form.base, marks={**theirs, **kept}))
    return await form_page.show(rt, visit, form, around, said, http_status=409, editing=post_id)


async def _ended(
    rt: Runtime, visit: Visit, form: ComposeForm, around: FormContext, post_id: str, more: str = "Nothing is saved."
) -> Answer:
    """The form with its words: the post can no longer be edited."""
    post = views.load_post(rt, post_id)
    said = Messages(message=f"{submissions.why_ended(post['status'])} {more}", post_id=post_id, ended=True)
    return await form_page.show(rt, visit, form, around, said, http_status=409, editing=post_id)


async def _base(rt: Runtime, post: dict[str, Any], form: ComposeForm, around: FormContext) -> FormBase:
    """What a form says that begins with this post."""
    begins = await form_page.untouched(rt, form, around)
    return FormBase(PostVersion.of(post), marks(_form_values(rt, begins, around)))


def _form_values(rt: Runtime, form: ComposeForm, around: FormContext) -> Values:
    return values(form, around.networks, only_photos=media.only_photos(rt, form))


def _changed_fields(rt: Runtime, form: ComposeForm, around: FormContext) -> list[str]:
    assert form.base is not None
    return changed(_form_values(rt, form, around), form.base.marks)


def _in_words(rt: Runtime, name: str, value: Any, zone: tzinfo) -> str:
    """The value of a field as a person reads it."""
    match name:
        case _ if name == TEXT:
            return str(value) or "No text"
        case _ if name == TIME:
            return times.exactly(parse(value), zone) if value else "Now"
        case _ if name == MEDIA:
            return "; ".join(_medium(rt, *item) for item in value or ()) or "None"
    if value is None:
        return "Not set"
    key = name.rpartition(".")[2]
    return _medium(rt, str(value), "") if key in option_fields.ARTIFACTS else option_fields.value_text(key, value)


def _medium(rt: Runtime, artifact_id: str, alt: str) -> str:
    row = uploads.find(rt, artifact_id)
    file_name = "a file that was removed" if row is None else row.file_name
    return f"{file_name} (alt text: {alt})" if alt else str(file_name)
