"""Publishing on Pinterest: the board first, then the media, then one call that makes the pin.

Pinterest offers no idempotency key, so that call is sent once per permission, and every answer to it that is neither a
pin nor a refusal leaves the question open for whoever reads the board back.
"""

from typing import Any

from socialpub.core.settings.sections import PinterestSection
from socialpub.providers import responses
from socialpub.providers.content import Content
from socialpub.providers.errors import NoAnswer
from socialpub.providers.job import Job
from socialpub.providers.outcomes import Outcome, Published
from socialpub.providers.pinterest import boards, pictures, video
from socialpub.providers.pinterest.check import alt_text, is_video
from socialpub.providers.pinterest.errors import REQUEST_ID, Why, judge
from socialpub.providers.pinterest.talk import again, ask, id_of, refusal, succeeded
from socialpub.providers.protocol import Kind, Step
from socialpub.providers.responses import HttpResponse

BOARD, FIT, CREATE = "board", "fit", "create_pin"
SMALLER = "Pinterest found the pictures too large: they are sent smaller."
SMALLER_TRIES = 2
ANSWER_SECONDS = 120.0
"""Pinterest reads the pictures while the call runs."""
CODE_NO_MEDIA = "404"
"""The code of `media upload not found`; a board or a section that is missing has codes of its own."""


def plan(content: Content) -> list[Step]:
    """The steps of a pin, a pure function of its content."""
    media = [
        Step(video.REGISTER, Kind.PREPARE),
        Step(video.UPLOAD, Kind.PREPARE),
        Step(video.AWAIT, Kind.POLL),
    ]
    if not is_video(content):
        media = [Step(FIT, Kind.PREPARE)]
    return [Step(BOARD, Kind.PREPARE), *media, Step(CREATE, Kind.COMMIT)]


def run(step: str, job: Job, section: PinterestSection) -> Outcome:
    """One step of the plan. Raises `errors.py`, `Unfit`, and FileNotFoundError when a file is gone."""
    return STEPS[step](job, section)


def create(job: Job, section: PinterestSection) -> Outcome:
    if is_video(job.content) and not video.ready(job):
        return video.forgotten(job, video.FORGOTTEN)
    answer = ask(job, "POST", f"{section.api_url}/pins", json=request_body(job), deadline_seconds=ANSWER_SECONDS)
    if succeeded(answer):
        pin_id = id_of(responses.json_object(answer), "id")
        if pin_id is None:
            raise NoAnswer("Pinterest took the pin but gave it no id.", request_id=answer.headers.get(REQUEST_ID))
        return Published(pin_id, permalink(pin_id))
    return _refused(job, answer)


def request_body(job: Job) -> dict[str, Any]:
    """The fields of `POST /pins`. What is empty is left out: Pinterest wants neither "" nor null."""
    chosen = job.options
    fields = {
        "board_id": chosen["boardId"],
        "board_section_id": chosen.get("boardSectionId"),
        "title": chosen.get("title"),
        "description": job.content.text if job.content.text.strip() else None,
        "alt_text": alt_text(job.content),
        "link": chosen.get("link"),
        "dominant_color": chosen.get("dominantColor"),
        "media_source": video.source(job) if is_video(job.content) else pictures.source(job),
    }
    return {name: value for name, value in fields.items() if value is not None}


def permalink(pin_id: str) -> str:
    return f"https://www.pinterest.com/pin/{pin_id}/"


def _refused(job: Job, answer: HttpResponse) -> Outcome:
    no = judge(answer)
    if is_video(job.content) and no.why is Why.GONE and no.code == CODE_NO_MEDIA:
        return video.forgotten(job, no.message)
    if not is_video(job.content) and no.why is Why.TOO_LARGE:
        return again(
            job,
            FIT,
            SMALLER,
            limit=SMALLER_TRIES,
            otherwise=no.message,
            max_bytes=pictures.bytes_allowed(job) // 2,
            fit={},
        )
    return refusal(job, no)


STEPS = {
    BOARD: boards.check_board,
    FIT: pictures.fit,
    video.REGISTER: video.register,
    video.UPLOAD: video.upload,
    video.AWAIT: video.await_processing,
    CREATE: create,
}
