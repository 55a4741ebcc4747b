"""X (Twitter), API v2: uploads the media, then creates the post with one call.

X has no idempotency key, so each commit sends that call once. A response that is neither a post nor a refusal leaves
the outcome unknown for the read-back.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from socialpub.core.settings.networks import XSection
from socialpub.providers.auth import Account
from socialpub.providers.base import (
    Again,
    CannotTell,
    Cause,
    Content,
    Job,
    Kind,
    MediaFile,
    Outcome,
    Provider,
    Published,
    Readback,
    Refused,
    Step,
    Unknown,
    Wait,
)
from socialpub.providers.error_table import as_outcome
from socialpub.providers.responses import Reason, Rejected
from socialpub.providers.x import client, limits, options, read_back, upload
from socialpub.providers.x.auth import XOAuth
from socialpub.providers.x.check import has_undocumented_format, list_notes, list_problems
from socialpub.providers.x.preview import preview_post

CREATE = "create_post"
CREATES, UPLOADS = 3, 2
"""In all, while X reports invalid media ids."""
NOT_ACCEPTED = "X does not accept the media. socialpub uploads the media again."
FRESH_SECONDS = 10
"""X may not have distributed younger media to all of its servers yet."""
RETRY_SECONDS = 4


class X(Provider):
    name = "x"
    label = "X"
    option_table = options.TABLE
    check = staticmethod(list_problems)
    notes = staticmethod(list_notes)
    preview = staticmethod(preview_post)

    def __init__(self, section: XSection) -> None:
        self.section = section
        self.site_url = section.site_url
        self.auth = XOAuth(section)
        self._spoken = read_back.SpokenDialect()

    def account_url(self, account: Account | None) -> str:
        return f"{self.site_url}/{account.username}" if account and account.username else self.site_url

    def account_facts(self, facts: Mapping[str, Any]) -> list[tuple[str, str]]:
        allowed = limits.entitlement(facts)
        return [
            ("Subscription", str(facts.get("subscription_type") or "not known")),
            ("Longest text", f"{allowed.text_length:,} characters"),
            ("Longest video", f"{allowed.video_seconds // 60} minutes"),
        ]

    def plan(self, content: Content, options: Mapping[str, Any]) -> Sequence[Step]:  # noqa: ARG002
        return [*(upload.plan(content) if content.media else ()), Step(CREATE, Kind.COMMIT)]

    def run(self, step: str, job: Job) -> Outcome:
        name, _, index = step.partition(":")
        return self._create(job) if name == CREATE else upload.run_step(name, job, self.section, int(index))

    def recover(self, job: Job) -> Readback | CannotTell:
        return read_back.check_account(job, self.section, self._spoken)

    def _create(self, job: Job) -> Outcome:
        for index in range(len(job.content.media)):
            if not upload.ready(job, index):
                return upload.start_over_expired(job, index)
        # X's gateway refuses a body without `text`, so an empty text is sent.
        body: dict[str, Any] = {"text": job.content.text, **body_fields(job.options)}
        if job.content.media:
            ids = [job.memo["media"][str(index)]["id"] for index in range(len(job.content.media))]
            body["media"] = {"media_ids": ids}
        response = client.call(job, "POST", f"{self.section.api_url}/2/tweets", json=body)
        if response.ok:
            post_id = client.read_id(response, "post")
            return Published(post_id, client.permalink(self.site_url, job.account.username, post_id))
        rejection = client.classify(response, now=job.wall_now)
        if rejection.reason is Reason.DUPLICATE and job.unknown_before:
            message = "X reports that it already has this text, so the earlier attempt probably succeeded."
            return Unknown(message, rejection.code)
        if rejection.reason is Reason.MEDIA_INVALID and job.content.media:
            return _send_media_again(job, rejection)
        return as_outcome(rejection)


def body_fields(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options as fields of `POST /2/tweets`, without false and default values: X forbids some of them."""
    fields: dict[str, Any] = {}
    if chosen.get("replySettings", options.EVERYONE) != options.EVERYONE:
        fields["reply_settings"] = chosen["replySettings"]
    for key, name in (
        ("madeWithAi", "made_with_ai"),
        ("paidPartnership", "paid_partnership"),
        ("shareWithFollowers", "share_with_followers"),
    ):
        if chosen.get(key):
            fields[name] = True
    for key, name in (("quotePostId", "quote_tweet_id"), ("communityId", "community_id")):
        if chosen.get(key):
            fields[name] = chosen[key]
    if chosen.get("inReplyToPostId"):
        fields["reply"] = {"in_reply_to_tweet_id": chosen["inReplyToPostId"]}
    return fields


def _send_media_again(job: Job, rejection: Rejected) -> Outcome:
    """Wait once, upload again once, then refuse.

    X returns the same error for media that are not processed yet, have expired or break its rules.
    """
    creates = job.memo.get("creates", 0) + 1
    memo = {**job.memo, "creates": creates}
    uploads = [upload.recall(memo, index) for index in range(len(job.content.media))]
    finished_at = max(media["ready_at"] for media in uploads)
    times = f"socialpub uploaded the media {1 + job.times(Cause.NOT_ACCEPTED)} times in vain."
    given_up = Refused(
        f"{rejection.message} {times} {' '.join(dict.fromkeys(map(_advise, job.content.media)))}",
        rejection.code,
        content=True,
        too_long=any(map(_is_long, job.content.media)),
    )
    if creates >= CREATES:
        return given_up
    if not memo.get("waited") and job.even_now.timestamp() - finished_at < FRESH_SECONDS:
        return Wait(RETRY_SECONDS, "X has not made the media available yet", {**memo, "waited": True})
    first = upload.plan(job.content)[0].name
    changed = map(upload.change, job.content.media, uploads)
    memo = {**memo, "waited": False, "media": {str(index): media for index, media in enumerate(changed)}}
    return Again(first, memo, Cause.NOT_ACCEPTED, NOT_ACCEPTED, limit=UPLOADS - 1, otherwise=given_up)


def _is_long(media: MediaFile) -> bool:
    """Return whether X may refuse the video's duration from an account without a subscription."""
    return media.kind == "video" and media.facts.get("duration_seconds", 0) > limits.VIDEO_SURE_SECONDS


def _advise(media: MediaFile) -> str:
    if media.kind == "image":
        return upload.GIF_ADVICE if limits.needs_chunks(media) else upload.IMAGE_ADVICE
    if not _is_long(media):
        return upload.VIDEO_ADVICE
    return f"{client.SHORTEN_VIDEO} {upload.VIDEO_ADVICE if has_undocumented_format(media) else ''}".rstrip()
