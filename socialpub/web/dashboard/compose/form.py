"""The form of Compose: read from a request or from a post, and turned into the body of an API request.

Nothing is checked here: the shapes and rows that check a request to the API check that body.
"""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from typing import Any

import orjson

from socialpub.core.clock import parse, parse_id, stamp
from socialpub.providers.registry import PROVIDERS
from socialpub.providers.tiktok import creator
from socialpub.web.dashboard.browser import times
from socialpub.web.dashboard.browser.forms import Form
from socialpub.web.dashboard.browser.times import LocalTime
from socialpub.web.dashboard.compose import option_fields
from socialpub.web.dashboard.posts import submissions
from socialpub.web.dashboard.posts.submissions import PostVersion

NOW, AT = "now", "at"
DISCLOSED = "tiktok.disclosed"
"""The switch for commercial content: TikTok's form has it, its API does not."""
TEXT, TIME, MEDIA = "body", "time", "media"
"""The names of the fields. Options are named as in the form (`options.x.replySettings`)."""


@dataclass(frozen=True, slots=True)
class FormMedia:
    artifact_id: str
    alt: str = ""


@dataclass(frozen=True, slots=True)
class FormBase:
    """The post that a form was made from: its version, and a mark of each value that the form began with."""

    version: PostVersion
    marks: Mapping[str, str]

    @classmethod
    def read(cls, form: Form) -> "FormBase | None":
        """Return the post that a form was made from; None for a form that begins a post."""
        version = PostVersion.read(form)
        try:
            marks = orjson.loads(form.text("was") or "null")
        except orjson.JSONDecodeError:
            marks = None
        return cls(version, marks) if version is not None and isinstance(marks, dict) else None

    @property
    def was(self) -> str:
        """The marks as the value of a hidden field."""
        return orjson.dumps(dict(self.marks)).decode()


@dataclass(frozen=True, slots=True)
class ComposeForm:
    """`options` are by network, as they are shown. `zone` names the time zone of `time`."""

    form_id: str = field(default_factory=submissions.new_id)
    """Recognizes a form that is sent twice."""
    body: str = ""
    profiles: tuple[str, ...] = ()
    media: tuple[FormMedia, ...] = ()
    when: str = NOW
    time: str = ""
    zone: str = "UTC"
    which: str = ""
    """Chooses one of two equal times (`times.FIRST`, `times.SECOND`)."""
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    disclosed: bool = False
    base: FormBase | None = None
    """The post that the form edits."""
    twice: str = ""
    """The post with equal content that the owner wants a second time."""
    again: str = ""
    """The post whose failed deliveries this one replaces."""

    @property
    def scheduled_at(self) -> datetime | None:
        """The chosen time. None also for a text that names no single instant."""
        local = self.local_time
        return local.instant(self.which) if local is not None and self.when == AT else None

    @property
    def local_time(self) -> LocalTime | None:
        """The fields for the time. None for a text that is no time."""
        return times.read_local(self.time, times.find_zone(self.zone))

    def moved(self, artifact_id: str, direction: str) -> "ComposeForm":
        """Move one file before its neighbor (`up`) or behind it (`down`)."""
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
        """Return the body of `POST /posts`. `networks` are those of the profiles."""
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
        """Return the options that a post gets for these networks."""
        given = {name: dict(self.options.get(name, {})) for name in PROVIDERS if name in networks}
        if "tiktok" in given:
            given["tiktok"] = creator.counting(given["tiktok"], only_photos=only_photos)
        return {name: options for name, options in given.items() if options}


def read(form: Form, zone: tzinfo) -> ComposeForm:
    """Read a request. Invalid ids are left out."""
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
        options={name: option_fields.read(form, name) for name in PROVIDERS},
        disclosed=form.ticked(DISCLOSED),
        base=FormBase.read(form),
        twice=parse_id(form.text("twice")) or "",
        again=parse_id(form.text("again")) or "",
    )


def of_post(post: Mapping[str, Any], zone: tzinfo, *, whole: bool) -> ComposeForm:
    """Return the form of this post, as the API shows it. Without `whole` it begins another post: without its time, and
    with the reusable options only."""
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
    """Return the options that another post begins with. TikTok wants all its choices but the mode for each post."""
    return {key: value for key, value in given.items() if network != "tiktok" or key == "mode"}


def mark(value: Any) -> str:
    """Return a short digest of a field's value; an empty text for one that is empty or not given."""
    if value is None or value == "" or value == []:
        return ""
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def is_old_time(form: ComposeForm) -> bool:
    """Return whether the fields for the time are as the form began."""
    began = form.base.marks.get(TIME, "") if form.base is not None else ""
    left = replace(form, when=AT).scheduled_at
    return left is not None and mark(stamp(left)) == began
