"""`/posts/{id}/edit`: a scheduled post is edited in the form that it was made in.

Only what the form changes is saved. If the post was changed meanwhile, the page shows both versions and asks. If the
post can no longer be edited, the form comes back, and its content can become another post.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import tzinfo
from typing import Any

from socialpub.core.clock import parse
from socialpub.core.errors import Conflict
from socialpub.publishing import posts, uploads
from socialpub.runtime import Runtime
from socialpub.web.answer import Answer
from socialpub.web.dashboard import (
    compose,
    compose_changes,
    compose_form,
    compose_media,
    compose_page,
    form_files,
    option_fields,
    option_words,
    post_versions,
    times,
)
from socialpub.web.dashboard.compose_changes import MEDIA, TEXT, TIME, Values
from socialpub.web.dashboard.compose_check import Checked
from socialpub.web.dashboard.compose_form import ComposeForm, FormBase
from socialpub.web.dashboard.compose_page import Circumstances, ComparedValue, Said
from socialpub.web.dashboard.page import page, refusal
from socialpub.web.dashboard.post_versions import KEEP, ChangedMeanwhile, PostVersion
from socialpub.web.dashboard.visit import Visit

CHANGED = "The post is changed."
ONLY_SCHEDULED = "Only posts scheduled for the future can be edited."


@page()
async def form(rt: Runtime, visit: Visit) -> Answer:
    """The form of a scheduled post."""
    post = compose.load_post(rt, visit.params["postId"])
    form = compose_form.of_post(post, visit.zone, whole=True)
    around = await compose_page.look(rt, refresh=True, only=form.profiles)
    try:
        posts.check_changeable(post["status"], post.get("scheduledAt"), rt.stamp())
    except Conflict:
        return await _ended(rt, visit, form, around, post["id"], ONLY_SCHEDULED)
    form = replace(form, base=await _base(rt, post, form, around))
    return await compose_page.show(rt, visit, form, around, editing=post["id"])


@page(streams=True)
async def save(rt: Runtime, visit: Visit) -> Answer | None:
    """The form of a scheduled post was sent."""
    received = await form_files.receive(rt, visit, lambda error: refusal(visit, error))
    if received is None:
        return None
    with received:
        post = compose.load_post(rt, visit.params["postId"])
        if received.form.text("do") == KEEP:
            return visit.go(f"/posts/{post['id']}", status=post_versions.KEPT)
        present = compose_form.of_post(post, visit.zone, whole=True)
        form = replace(compose_form.read(received.form, visit.zone), profiles=present.profiles)
        around = await compose_page.look(rt, refresh=False, only=form.profiles)
        if form.base is None:
            form = replace(form, base=await _base(rt, post, present, around))
        try:
            posts.check_changeable(post["status"], post.get("scheduledAt"), rt.stamp())
        except Conflict:
            files = await form_files.keep(rt, received)
            return await _ended(rt, visit, form.with_uploads(files.artifact_ids, files.of_options), around, post["id"])

        async def change(form: ComposeForm, around: Circumstances, checked: Checked) -> Answer:
            return await _save(rt, visit, post["id"], form, around, checked)

        def judged(form: ComposeForm) -> ComposeForm:
            return compose_changes.merged(form, _changed(rt, form, around), present)

        return await compose.handle(rt, visit, received, form, around, change, editing=post["id"], judged=judged)


async def _save(
    rt: Runtime, visit: Visit, post_id: str, form: ComposeForm, around: Circumstances, checked: Checked
) -> Answer:
    assert checked.draft is not None
    assert form.base is not None
    fields = _changed(rt, form, around)
    if not fields:
        return visit.go(f"/posts/{post_id}", status=post_versions.SAME)
    change = compose_changes.change_of(fields, _values(rt, form, around), checked.draft)
    try:
        await rt.write_soon(post_versions.edit, post_id, form.base.version, change)
    except ChangedMeanwhile:
        return await _ask(rt, visit, post_id, form, around, fields)
    except Conflict:
        return await _ended(rt, visit, form, around, post_id)
    return visit.go(f"/posts/{post_id}", status=CHANGED)


async def _ask(
    rt: Runtime, visit: Visit, post_id: str, form: ComposeForm, around: Circumstances, fields: Sequence[str]
) -> Answer:
    """Both versions, and which of them is wanted."""
    post = compose.load_post(rt, post_id)
    present = await compose_page.untouched(rt, compose_form.of_post(post, visit.zone, whole=True), around)
    sent, now = _values(rt, form, around), _values(rt, present, around)
    if not compose_changes.differing(fields, sent, now):
        return visit.go(f"/posts/{post_id}", status=CHANGED)  # the same form, sent twice
    assert form.base is not None
    zone = times.zone_named(form.zone)
    compared = [
        ComparedValue(
            one.label,
            _in_words(rt, one.name, now.get(one.name), zone),
            _in_words(rt, one.name, sent.get(one.name), zone),
            one.is_ours,
        )
        for one in compose_changes.compared(form.base.marks, sent, now)
    ]
    said = Said(message=post_versions.CHANGED_MEANWHILE, compared=compared, version=PostVersion.of(post))
    # The form shows what “Save my changes” saves. Only the fields that it changes keep the mark that it began with.
    kept = {name: mark for name, mark in form.base.marks.items() if name in fields}
    theirs = {name: mark for name, mark in compose_changes.marks(now).items() if name not in fields}
    form = replace(compose_changes.merged(form, fields, present), base=replace(form.base, marks={**theirs, **kept}))
    return await compose_page.show(rt, visit, form, around, said, http_status=409, editing=post_id)


async def _ended(
    rt: Runtime, visit: Visit, form: ComposeForm, around: Circumstances, post_id: str, more: str = "Nothing is saved."
) -> Answer:
    """The form with its words: the post can no longer be edited."""
    post = compose.load_post(rt, post_id)
    said = Said(message=f"{post_versions.why_ended(post['status'])} {more}", post_id=post_id, ended=True)
    return await compose_page.show(rt, visit, form, around, said, http_status=409, editing=post_id)


async def _base(rt: Runtime, post: dict[str, Any], form: ComposeForm, around: Circumstances) -> FormBase:
    """What a form says that begins with this post."""
    begins = await compose_page.untouched(rt, form, around)
    return FormBase(PostVersion.of(post), compose_changes.marks(_values(rt, begins, around)))


def _values(rt: Runtime, form: ComposeForm, around: Circumstances) -> Values:
    return compose_changes.values(form, around.networks, only_photos=compose_media.only_photos(rt, form))


def _changed(rt: Runtime, form: ComposeForm, around: Circumstances) -> list[str]:
    assert form.base is not None
    return compose_changes.changed(_values(rt, form, around), form.base.marks)


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
    return _medium(rt, str(value), "") if key in option_fields.ARTIFACTS else option_words.shown(key, value)


def _medium(rt: Runtime, artifact_id: str, alt: str) -> str:
    row = uploads.find(rt, artifact_id)
    file_name = "a file that was removed" if row is None else row["file_name"]
    return f"{file_name} (alt text: {alt})" if alt else str(file_name)
