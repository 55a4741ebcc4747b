"""Publishing on Pinterest: one function per step, and the one call that makes the pin.

Pinterest offers no idempotency key, so that call is sent once per permission, and every answer to it that is neither a
pin nor a refusal leaves the question open for whoever reads the board back.
"""

from dataclasses import replace
from typing import Any

from socialpub.core.settings.networks import PinterestSection
from socialpub.providers.error_table import Reason
from socialpub.providers.errors import NoAnswer
from socialpub.providers.job import Job
from socialpub.providers.outcomes import Again, Memo, Outcome, Published, Refused, Unknown
from socialpub.providers.pinterest import boards, pictures, plan, upload
from socialpub.providers.pinterest.check import alt_text
from socialpub.providers.pinterest.client import call, id_of, refusal
from socialpub.providers.pinterest.errors import REQUEST_ID, TABLE
from socialpub.providers.pinterest.oauth import how_to_use_secret_boards
from socialpub.providers.responses import HttpResponse, json_object

SMALLER = "Pinterest found the pictures too large: they are sent smaller."
SMALLER_IN_BETWEEN = "Something on the way to Pinterest found the pictures too large: they are sent smaller."
SMALLER_TRIES = 2
TOO_LARGE = 413
ANSWER_SECONDS = 120.0
"""Pinterest reads the pictures while the call runs."""
CODE_NO_MEDIA = "404"
"""The code of `media upload not found`; a board or a section that is missing has codes of its own."""


def run(step: str, job: Job, section: PinterestSection) -> Outcome:
    """One step of the plan. Raises `errors.py`, `Unfit`, and FileNotFoundError when a file is gone."""
    return STEPS[step](job, section)


def create(job: Job, section: PinterestSection) -> Outcome:
    if job.content.has_video and not upload.ready(job):
        return upload.forgotten(job, upload.FORGOTTEN)
    if job.memo.get("refit"):
        return Again(plan.FIT, {**job.memo, "refit": False}, SMALLER_IN_BETWEEN, otherwise=Refused(SMALLER_IN_BETWEEN))
    response = call(job, "POST", f"{section.api_url}/pins", json=request_body(job), deadline_seconds=ANSWER_SECONDS)
    if response.ok:
        pin_id = id_of(json_object(response), "id")
        if pin_id is None:
            raise NoAnswer("Pinterest took the pin but gave it no id.", request_id=response.headers.get(REQUEST_ID))
        return Published(pin_id, permalink(section, pin_id))
    return _refused(job, section, response)


def request_body(job: Job) -> dict[str, Any]:
    """The fields of `POST /pins`. What is empty is left out: Pinterest wants neither "" nor null."""
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
        # Not in the description 5.23: seen in public clients of 2026.
        "ai_disclosures": {"values": disclosures} if disclosures else None,
        "media_source": upload.source(job) if job.content.has_video else pictures.source(job),
    }
    return {name: value for name, value in fields.items() if value is not None}


def permalink(section: PinterestSection, pin_id: str) -> str:
    return f"{section.site_url}/pin/{pin_id}/"


def _refused(job: Job, section: PinterestSection, response: HttpResponse) -> Outcome:
    try:
        rejection = TABLE.classify(response)
    except NoAnswer as error:
        if response.status == TOO_LARGE and _has_pictures(job):
            # No proof that there is no pin. Should the account not show it, a smaller one has better chances.
            return Unknown(error.message, error.code, {**_smaller(job), "refit": True})
        raise
    if rejection.reason is Reason.NOT_PERMITTED:
        how = how_to_use_secret_boards(job.account.scopes, section)
        rejection = replace(rejection, message=" ".join(filter(None, (rejection.message, how))))
    if job.content.has_video and rejection.reason is Reason.GONE and rejection.code == CODE_NO_MEDIA:
        return upload.forgotten(job, rejection.message)
    if _has_pictures(job) and rejection.reason is Reason.TOO_LARGE:
        return Again(
            plan.FIT, _smaller(job), SMALLER, SMALLER_TRIES, otherwise=Refused(rejection.message, content=True)
        )
    return refusal(job, rejection)


def _has_pictures(job: Job) -> bool:
    return not job.content.has_video or pictures.has_cover(job)


def _smaller(job: Job) -> Memo:
    return {**job.memo, "max_bytes": pictures.bytes_allowed(job) // 2, "fit": {}}


STEPS = {
    plan.BOARD: boards.check_board,
    plan.FIT: pictures.fit,
    plan.REGISTER: upload.nothing,
    plan.UPLOAD: upload.upload,
    plan.AWAIT: upload.await_processing,
    plan.CREATE: create,
}
