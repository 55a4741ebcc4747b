"""Pinterest, API v5: checks the board, prepares the media, then creates the pin with one call.

Pinterest has no idempotency key, so each commit sends that call once. A response that is neither a pin nor a refusal
leaves the outcome unknown for the read-back of the board.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from socialpub.core.errors import FieldError
from socialpub.core.settings.networks import PinterestSection
from socialpub.providers.auth import Account
from socialpub.providers.base import (
    Again,
    CannotTell,
    Cause,
    Content,
    Job,
    Kind,
    Memo,
    Outcome,
    Provider,
    Published,
    Readback,
    Refused,
    Step,
    Unknown,
)
from socialpub.providers.pinterest import boards, client, read_back, upload
from socialpub.providers.pinterest.auth import PinterestOAuth
from socialpub.providers.pinterest.boards import BoardApi
from socialpub.providers.pinterest.check import alt_text, list_notes, list_problems
from socialpub.providers.pinterest.options import COVER, TABLE
from socialpub.providers.pinterest.preview import preview_post
from socialpub.providers.responses import HttpResponse, NoAnswer, Reason, json_object

BOARD, FIT, CREATE = "board", "fit", "create_pin"
STEPS = {
    BOARD: boards.check_board,
    FIT: upload.fit_images,
    upload.UPLOAD: upload.upload_video,
    upload.AWAIT: upload.await_processing,
}

SMALLER = "Pinterest found the images too large. socialpub sends smaller images."
SMALLER_IN_BETWEEN = "A proxy or CDN before Pinterest found the images too large. socialpub sends smaller images."
SMALLER_TRIES = 2
TOO_LARGE = 413
ANSWER_SECONDS = 120.0
"""Pinterest processes the images during the call."""
CODE_NO_MEDIA = "404"
"""The code of `media upload not found`. A missing board or section has another code."""


class Pinterest(Provider, BoardApi):
    name = "pinterest"
    label = "Pinterest"
    option_table = TABLE
    notes = staticmethod(list_notes)
    preview = staticmethod(preview_post)

    auth: PinterestOAuth

    def __init__(self, section: PinterestSection) -> None:
        self.section = section
        self.auth = PinterestOAuth(section)

    def account_url(self, account: Account | None) -> str:
        site = self.section.site_url
        return f"{site}/{account.username}/" if account and account.username else site

    def check(self, content: Content, options: Mapping[str, Any], account: Account) -> list[FieldError]:
        return list_problems(content, options, account, self.section)

    def account_facts(self, facts: Mapping[str, Any]) -> list[tuple[str, str]]:
        return [("Account type", str(facts["account_type"]).lower())] if facts.get("account_type") else []

    def plan(self, content: Content, options: Mapping[str, Any]) -> Sequence[Step]:
        media = [Step(FIT, Kind.PREPARE)]
        if content.has_video:
            cover = media if COVER in options else []
            media = [*cover, Step(upload.UPLOAD, Kind.PREPARE), Step(upload.AWAIT, Kind.POLL)]
        return [Step(BOARD, Kind.PREPARE), *media, Step(CREATE, Kind.COMMIT)]

    def run(self, step: str, job: Job) -> Outcome:
        return self._create(job) if step == CREATE else STEPS[step](job, self.section)

    def recover(self, job: Job) -> Readback | CannotTell:
        return read_back.check_account(job, self.section)

    def _create(self, job: Job) -> Outcome:
        if job.content.has_video and not upload.is_ready(job):
            return upload.register_forgotten(job, upload.FORGOTTEN)
        if job.memo.get("refit"):
            memo, otherwise = {**job.memo, "refit": False}, Refused(SMALLER_IN_BETWEEN)
            return Again(FIT, memo, Cause.TOO_LARGE_FOR_PROXY, SMALLER_IN_BETWEEN, otherwise=otherwise)
        url, body = f"{self.section.api_url}/pins", _request_body(job)
        response = client.call(job, "POST", url, json=body, deadline_seconds=ANSWER_SECONDS)
        if not response.ok:
            return self._read_refusal(job, response)
        pin_id = client.read_id(json_object(response), "id")
        if pin_id is None:
            request_id = response.headers.get(client.REQUEST_ID)
            raise NoAnswer("Pinterest accepted the pin but did not return an id.", request_id=request_id)
        return Published(pin_id, client.permalink(self.section, pin_id))

    def _read_refusal(self, job: Job, response: HttpResponse) -> Outcome:
        has_images = not job.content.has_video or upload.has_cover(job)
        smaller: Memo = {**job.memo, "max_bytes": upload.max_image_bytes(job) // 2, "fit": {}}
        try:
            rejection = client.TABLE.classify(response)
        except NoAnswer as error:
            if response.status == TOO_LARGE and has_images:
                # The pin may exist. If the account does not show the pin, smaller images may succeed.
                return Unknown(error.message, error.code, {**smaller, "refit": True})
            raise
        if rejection.reason is Reason.NOT_PERMITTED:
            how = self.auth.how_to_use_secret_boards(job.account.scopes)
            return Refused(" ".join(filter(None, (rejection.message, how))), rejection.code, content=rejection.content)
        if job.content.has_video and rejection.reason is Reason.GONE and rejection.code == CODE_NO_MEDIA:
            return upload.register_forgotten(job, rejection.message)
        if has_images and rejection.reason is Reason.TOO_LARGE:
            otherwise = Refused(rejection.message, content=True)
            return Again(FIT, smaller, Cause.TOO_LARGE, SMALLER, SMALLER_TRIES, otherwise=otherwise)
        return client.refusal(job, rejection)


def _request_body(job: Job) -> dict[str, Any]:
    """Return the fields of `POST /pins` without empty ones: Pinterest accepts neither "" nor null."""
    chosen = job.options
    disclosures = chosen.get("aiDisclosures")
    fields = {
        "board_id": chosen["boardId"],
        "board_section_id": chosen.get("boardSectionId"),
        "title": chosen.get("title"),
        "description": job.content.text if job.content.text.strip() else None,
        "alt_text": alt_text(job.content),
        "link": chosen.get("link"),
        "dominant_color": chosen.get("dominantColor"),
        # Not in the description 5.23, but in public clients of 2026.
        "ai_disclosures": {"values": disclosures} if disclosures else None,
        "media_source": upload.video_source(job) if job.content.has_video else upload.image_source(job),
    }
    return {name: value for name, value in fields.items() if value is not None}
