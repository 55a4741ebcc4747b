"""The form of Compose: read from a request or a post, and converted to the body of an API request.

This module does not check anything. The rules of the API check the body.
"""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from typing import Any

import orjson

from socialpub.core.clock import parse, parse_id, stamp
from socialpub.providers.registry import LABELS
from socialpub.providers.tiktok import creator
from socialpub.web.dashboard.browser import times
from socialpub.web.dashboard.browser.forms import Form
from socialpub.web.dashboard.browser.times import LocalTime
from socialpub.web.dashboard.compose import option_fields
from socialpub.web.dashboard.posts import submissions
from socialpub.web.dashboard.posts.submissions import PostVersion

NOW, AT = "now", "at"
DISCLOSED = "tiktok.disclosed"
"""The switch for commercial content, which only the form has."""
TEXT, TIME, MEDIA = "body", "time", "media"


@dataclass(frozen=True, slots=True)
class FormMedia:
    artifact_id: str
    alt: str = ""


@dataclass(frozen=True, slots=True)
class FormBase:
    """The edited post: its version, and a digest of each initial value."""

    version: PostVersion
    marks: Mapping[str, str]

    @classmethod
    def read(cls, form: Form) -> "FormBase | None":
        """Return the edited post. None: the form creates a post."""
        version = PostVersion.read(form)
        try:
            marks = orjson.loads(form.text("was") or "null")
        except orjson.JSONDecodeError:
            marks = None
        return cls(version, marks) if version is not None and isinstance(marks, dict) else None

    @property
    def was(self) -> str:
        return orjson.dumps(dict(self.marks)).decode()


@dataclass(frozen=True, slots=True)
class ComposeForm:
    """`options` are by network. `zone` is the time zone of `time`."""

    form_id: str = field(default_factory=submissions.new_id)
    body: str = ""
    profiles: tuple[str, ...] = ()
    media: tuple[FormMedia, ...] = ()
    when: str = NOW
    time: str = ""
    zone: str = "UTC"
    which: str = ""
    """`times.FIRST` or `times.SECOND` for a repeated time."""
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    disclosed: bool = False
    base: FormBase | None = None
    twice: str = ""
    """The equal post that the owner wants to publish again."""
    again: str = ""
    """The post whose failed deliveries the form replaces."""

    @property
    def scheduled_at(self) -> datetime | None:
        """The chosen time; None also if the text does not name a single instant."""
        local = self.local_time
        return local.instant(self.which) if local is not None and self.when == AT else None

    @property
    def local_time(self) -> LocalTime | None:
        return times.read_local(self.time, times.find_zone(self.zone))

    def moved(self, artifact_id: str, direction: str) -> "ComposeForm":
        order = list(self.media)
        at = next((n for n, item in enumerate(order) if item.artifact_id == artifact_id), None)
        to = None if at is None else at + (-1 if direction == "up" else 1)
        if at is not None and to is not None and 0 <= to < len(order):
            order[at], order[to] = order[to], order[at]
        return replace(self, media=tuple(order))

    def without_time(self) -> "ComposeForm":
        return replace(self, when=NOW, time="", which="")

    def without(self, artifact_id: str) -> "ComposeForm":
        return replace(self, media=tuple(item for item in self.media if item.artifact_id != artifact_id))

    def request_body(self, networks: Collection[str], *, only_photos: bool) -> dict[str, Any]:
        """Return the body of `POST /posts`. `networks` are the networks of the profiles."""
        post: dict[str, Any] = {}
        if self.body.strip():
            post["body"] = self.body.strip()
        if self.scheduled_at is not None:
            post["scheduledAt"] = stamp(self.scheduled_at)
        body: dict[str, Any] = {"post": post, "profiles": list(self.profiles)}
        if self.media:
            body["media"] = [
                {"artifactId": item.artifact_id} | ({"alt": item.alt.strip()} if item.alt.strip() else {})
                for item in self.media
            ]
        options = self.sent_options(networks, only_photos=only_photos)
        if options:
            body["providerOptions"] = options
        return body

    def sent_options(self, networks: Collection[str], *, only_photos: bool) -> dict[str, dict[str, Any]]:
        given = {name: dict(self.options.get(name, {})) for name in LABELS if name in networks}
        if "tiktok" in given:
            given["tiktok"] = creator.select_used_choices(given["tiktok"], only_photos=only_photos)
        return {name: options for name, options in given.items() if options}


def read_form(form: Form, zone: tzinfo) -> ComposeForm:
    artifacts = dict.fromkeys(one for one in map(parse_id, form.texts("artifact")) if one)
    return ComposeForm(
        form_id=form.text(submissions.FIELD)[: submissions.MAX_ID_LETTERS] or submissions.new_id(),
        body=form.text("body"),
        profiles=tuple(dict.fromkeys(one for one in map(parse_id, form.texts("profiles")) if one)),
        media=tuple(FormMedia(one, form.text(f"alt.{one}")) for one in artifacts),
        when=AT if form.text("when") == AT else NOW,
        time=form.text("time").strip(),
        zone=form.text("zone") or times.zone_name(zone),
        which=form.text("which"),
        options={name: option_fields.read_options(form, name) for name in LABELS},
        disclosed=form.ticked(DISCLOSED),
        base=FormBase.read(form),
        twice=parse_id(form.text("twice")) or "",
        again=parse_id(form.text("again")) or "",
    )


def from_post(post: Mapping[str, Any], zone: tzinfo, *, whole: bool) -> ComposeForm:
    """Return a form with the content of this post. Without `whole`, time and single-use options are left out."""
    options: dict[str, Mapping[str, Any]] = {}
    for delivery in post["deliveries"]:
        network, given = delivery["provider"], delivery["providerOptions"]
        options.setdefault(network, given if whole else reusable_options(network, given))
    at = post.get("scheduledAt") if whole else None
    return ComposeForm(
        body=post.get("body", ""),
        profiles=tuple(delivery["profileId"] for delivery in post["deliveries"]),
        media=tuple(
            FormMedia(item["artifactId"], item.get("alt", "")) for item in post["media"] if whole or "url" in item
        ),
        when=AT if at else NOW,
        time=times.field_value(at, zone),
        zone=times.zone_name(zone),
        which=times.which_time(parse(at), zone) if at else "",
        options=options,
        disclosed=creator.is_commercial(options.get("tiktok", {})),
    )


def reusable_options(network: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options that a new post can reuse. TikTok requires new choices for each post, except the mode."""
    return {key: value for key, value in given.items() if network != "tiktok" or key == "mode"}


def mark(value: Any) -> str:
    """Return a short digest of a value, or an empty text for an empty value."""
    if value is None or value == "" or value == []:
        return ""
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def is_old_time(form: ComposeForm) -> bool:
    """Return whether the time fields are unchanged."""
    began = form.base.marks.get(TIME, "") if form.base is not None else ""
    left = replace(form, when=AT).scheduled_at
    return left is not None and mark(stamp(left)) == began
