"""What a form changes of the post that it was made from.

The page carries a mark of each value that the form begins with. A field counts as changed when what is sent has another
mark, so that an edit touches nothing else: a corrected typo leaves the time and the options as they are.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from socialpub.core.clock import stamp
from socialpub.providers.registry import LABELS, PROVIDERS
from socialpub.publishing.drafts import Change, Draft
from socialpub.web.dashboard import option_fields, option_words
from socialpub.web.dashboard.compose_form import AT, ComposeForm

TEXT, TIME, MEDIA = "body", "time", "media"
"""The fields beside the options, which are named as in the form (`options.x.replySettings`)."""

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
    return {name: mark(value) for name, value in of.items()}


def mark(value: Any) -> str:
    """The digest of one value; empty for one that is empty or not given."""
    if value is None or value == "" or value == []:
        return ""
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def changed(now: Values, was: Mapping[str, str]) -> list[str]:
    """The fields whose value is another one than that with this mark."""
    return [name for name in dict.fromkeys((*now, *was)) if mark(now.get(name)) != was.get(name, "")]


def is_old_time(form: ComposeForm) -> bool:
    """Whether the fields for the time still hold what the form began with."""
    began = form.base.marks.get(TIME, "") if form.base is not None else ""
    left = replace(form, when=AT).scheduled_at
    return left is not None and mark(stamp(left)) == began


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


def compared(was: Mapping[str, str], sent: Values, present: Values) -> list[ComparedField]:
    """The fields that either version has changed."""
    ours, theirs = changed(sent, was), changed(present, was)
    return [ComparedField(name, label_of(name), name in ours) for name in dict.fromkeys((*ours, *theirs))]


def differing(fields: Sequence[str], sent: Values, present: Values) -> list[str]:
    """Those of these fields in which the form differs from the post as it is at present."""
    return [name for name in fields if mark(sent.get(name)) != mark(present.get(name))]


def label_of(name: str) -> str:
    """What the field is called on the page."""
    network, key = _option(name)
    if network:
        return f"{LABELS[network]}, {option_words.LABELS.get(key, key)}"
    return {TEXT: "Text", TIME: "Time", MEDIA: "Media"}.get(name, name)


def _option(name: str) -> tuple[str, str]:
    """The network and the key of an option; empty for another field."""
    network, _, key = name.removeprefix(option_fields.PREFIX).partition(".")
    return (network, key) if name.startswith(option_fields.PREFIX) and network in LABELS else ("", "")


def _one_line(text: str) -> str:
    """As a field of one line sends it."""
    return text.replace("\r", "").replace("\n", "").strip()
