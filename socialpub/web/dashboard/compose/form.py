"""The form of Compose: read from a request or a post, and converted to the body of an API request.

This module does not check anything. The rules of the API check the body.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from typing import Any

from socialpub.core.clock import parse, parse_id, stamp
from socialpub.providers.options import spelled
from socialpub.providers.registry import LABELS, OPTIONS
from socialpub.providers.tiktok import creator
from socialpub.publishing.posts.drafts import Draft, DraftMedia
from socialpub.web.dashboard.browser import times
from socialpub.web.dashboard.browser.forms import Form
from socialpub.web.dashboard.browser.times import LocalTime
from socialpub.web.dashboard.compose import option_fields
from socialpub.web.dashboard.posts import submissions

NOW, AT = "now", "at"
DISCLOSED = "tiktok.disclosed"
"""The switch for commercial content, which only the form has."""


@dataclass(frozen=True, slots=True)
class ComposeForm:
    """An unchecked draft, and the fields that only the page has. `zone` is the time zone of `time`."""

    draft: Draft = field(default_factory=Draft)
    """Without its time: the text in `time` may name no instant, or two."""
    form_id: str = field(default_factory=submissions.new_id)
    when: str = NOW
    time: str = ""
    zone: str = "UTC"
    which: str = ""
    """`times.FIRST` or `times.SECOND` for a repeated time."""
    disclosed: bool = False
    version: str = ""
    """The `updatedAt` of the edited post when the form was loaded."""
    equal_post: str = ""
    """The equal post that the owner wants to publish again."""
    failed_post: str = ""
    """The post whose failed deliveries the form replaces."""

    @property
    def options(self) -> Mapping[str, Mapping[str, Any]]:
        return self.draft.options or {}

    @property
    def text(self) -> str:
        return (self.draft.body or "").strip()

    @property
    def scheduled_at(self) -> datetime | None:
        """The chosen time; None also if the text does not name a single instant."""
        return self.named_instant if self.when == AT else None

    @property
    def named_instant(self) -> datetime | None:
        """The instant in the time fields, even if “Now” is chosen."""
        local = self.local_time
        return None if local is None else local.instant(self.which)

    @property
    def local_time(self) -> LocalTime | None:
        return times.read_local(self.time, times.find_zone(self.zone))

    def with_draft(self, **fields: Any) -> "ComposeForm":
        return replace(self, draft=replace(self.draft, **fields))

    def moved(self, artifact_id: str, direction: str) -> "ComposeForm":
        order = list(self.draft.media)
        at = next((n for n, item in enumerate(order) if item.artifact_id == artifact_id), None)
        to = None if at is None else at + (-1 if direction == "up" else 1)
        if at is not None and to is not None and 0 <= to < len(order):
            order[at], order[to] = order[to], order[at]
        return self.with_draft(media=tuple(order))

    def without_time(self) -> "ComposeForm":
        return replace(self, when=NOW, time="", which="")

    def without(self, artifact_id: str) -> "ComposeForm":
        return self.with_draft(media=tuple(item for item in self.draft.media if item.artifact_id != artifact_id))

    def request_body(self, networks: Collection[str], *, only_photos: bool) -> dict[str, Any]:
        """Return the body of `POST /posts`. `networks` are the networks of the profiles."""
        draft, post = self.draft, dict[str, Any]()
        if self.text:
            post["body"] = self.text
        if self.scheduled_at is not None:
            post["scheduledAt"] = stamp(self.scheduled_at)
        body: dict[str, Any] = {"post": post, "profiles": list(draft.profiles)}
        if draft.media:
            body["media"] = [
                {"artifactId": item.artifact_id} | ({"alt": item.alt} if item.alt else {}) for item in draft.media
            ]
        options = self.sent_options(networks, only_photos=only_photos)
        if options:
            body["providerOptions"] = options
        return body

    def sent_options(self, networks: Collection[str], *, only_photos: bool) -> dict[str, dict[str, Any]]:
        by_network = {name: dict(self.options.get(name, {})) for name in LABELS if name in networks}
        if "tiktok" in by_network:
            by_network["tiktok"] = creator.select_used_choices(by_network["tiktok"], only_photos=only_photos)
        return {name: options for name, options in by_network.items() if options}

    def changed_fields(self, draft: Draft, post: Mapping[str, Any], *, only_photos: bool) -> frozenset[str]:
        """Return the fields of the checked draft that differ from the post, as a browser shows the post."""
        stored = from_post(post, times.find_zone(self.zone), whole=True)
        ours, theirs = (form.sent_options(LABELS, only_photos=only_photos) for form in (self, stored))
        same = {
            "body": (draft.body or "") == stored.text,
            "scheduled_at": (stamp(draft.scheduled_at) if draft.scheduled_at else None) == post.get("scheduledAt"),
            "media": _as_shown(draft.media) == _as_shown(stored.draft.media),
            "options": all(_as_sent(name, ours) == _as_sent(name, theirs) for name in LABELS),
        }
        return frozenset(name for name, is_same in same.items() if not is_same)


def _as_shown(media: tuple[DraftMedia, ...]) -> list[tuple[str, str]]:
    return [(item.artifact_id, _one_line(item.alt or "")) for item in media]


def _as_sent(network: str, options: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the value of each option of a network: a missing option has its default."""
    options_given = {
        key: _one_line(value) if isinstance(value, str) else value for key, value in options.get(network, {}).items()
    }
    return {option.name: option.default for option in OPTIONS[network]} | options_given


def _one_line(text: str) -> str:
    """Return the text without line breaks, which a field of one line removes."""
    return text.replace("\r", "").replace("\n", "").strip()


def read_form(form: Form, zone: tzinfo) -> ComposeForm:
    artifacts = dict.fromkeys(artifact_id for artifact_id in map(parse_id, form.texts("artifact")) if artifact_id)
    draft = Draft(
        body=form.text("body"),
        profiles=tuple(dict.fromkeys(profile_id for profile_id in map(parse_id, form.texts("profiles")) if profile_id)),
        media=tuple(
            DraftMedia(artifact_id, form.text(f"alt.{artifact_id}").strip() or None) for artifact_id in artifacts
        ),
        options={name: option_fields.read_options(form, name) for name in LABELS},
    )
    return ComposeForm(
        draft,
        form_id=form.text(submissions.FIELD)[: submissions.MAX_ID_LETTERS] or submissions.new_id(),
        when=AT if form.text("when") == AT else NOW,
        time=form.text("time").strip(),
        zone=form.text("zone") or times.zone_name(zone),
        which=form.text("which"),
        disclosed=form.ticked(DISCLOSED),
        version=form.text(submissions.VERSION_FIELD),
        equal_post=parse_id(form.text("twice")) or "",
        failed_post=parse_id(form.text("again")) or "",
    )


def from_post(post: Mapping[str, Any], zone: tzinfo, *, whole: bool) -> ComposeForm:
    """Return a form with the content of this post. Without `whole`, time and single-use options are left out."""
    networks = dict.fromkeys(delivery["provider"] for delivery in post["deliveries"])
    options = {network: _common_options(network, post["deliveries"]) for network in networks}
    if not whole:
        options = {network: reusable_options(network, of_network) for network, of_network in options.items()}
    at = post.get("scheduledAt") if whole else None
    draft = Draft(
        body=post.get("body"),
        profiles=tuple(delivery["profileId"] for delivery in post["deliveries"]),
        media=tuple(
            DraftMedia(item["artifactId"], item.get("alt")) for item in post["media"] if whole or "url" in item
        ),
        options=options,
    )
    return ComposeForm(
        draft,
        when=AT if at else NOW,
        time=times.field_value(at, zone),
        zone=times.zone_name(zone),
        which=times.which_time(parse(at), zone) if at else "",
        disclosed=creator.is_commercial(options.get("tiktok", {})),
    )


def _common_options(network: str, deliveries: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the options that all deliveries of a network share. The others come from the defaults of each profile."""
    table = OPTIONS[network]
    first, *others = (
        {
            option.name: of_delivery[key]
            for option in table
            if (key := spelled(option.name, table, of_delivery)) is not None
        }
        for of_delivery in (delivery["providerOptions"] for delivery in deliveries if delivery["provider"] == network)
    )
    return {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}


def reusable_options(network: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that a new post can reuse. TikTok requires new choices for each post, except the mode."""
    return {key: value for key, value in given.items() if network != "tiktok" or key == "mode"}
