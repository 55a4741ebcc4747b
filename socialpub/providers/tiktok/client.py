"""One exchange with TikTok's posting endpoints on behalf of a job or of an owner, and what refusals mean, row by row.

The code in the body decides, never the HTTP status or the wording: refusals come with status 200 as well. A body
without a code was not written by TikTok. A refusal without a row ends the post, with TikTok's own words.
"""

from collections.abc import Sequence, Set
from typing import Any

from socialpub.core.settings.networks import TikTokSection
from socialpub.providers.base import Job
from socialpub.providers.error_table import Action, ErrorBody, ErrorRow, ErrorTable
from socialpub.providers.http import Http
from socialpub.providers.responses import (
    HttpResponse,
    Reason,
    Rejected,
    json_object,
    object_at,
    retry_after_seconds,
    shortened,
    text_at,
)
from socialpub.providers.tiktok import limits
from socialpub.providers.tiktok.options import CREATOR, INIT_PHOTOS, INIT_VIDEO, is_draft

JSON = {"content-type": "application/json; charset=UTF-8"}
OWNER_SECONDS = 15.0
"""The longest that an owner waits for a page."""


def call(job: Job, section: TikTokSection, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Call and return the `data`; `path` is below `/v2/`, closing slash and query included. Raises `ProviderError`."""
    response = job.call("POST", f"{section.api_url}/v2/{path}", token=job.token, headers=JSON, json=body)
    error = read_error(response)
    job.trace.request_id = error.request_id or job.trace.request_id
    job.trace.code = None if error.code == "ok" else error.code or str(response.status)
    return _data(response, section, job.account.scopes, draft=is_draft(job.options))


def ask(http: Http, section: TikTokSection, path: str, token: str, scopes: Set[str]) -> dict[str, Any]:
    """Call for an owner who wants to post directly and has no post yet."""
    url = f"{section.api_url}/v2/{path}"
    response = http.call("POST", url, token=token, headers=JSON, json={}, deadline_seconds=OWNER_SECONDS)
    return _data(response, section, scopes, draft=False)


def _data(response: HttpResponse, section: TikTokSection, scopes: Set[str], *, draft: bool) -> dict[str, Any]:
    if read_error(response).code == "ok" and response.ok:
        return object_at(json_object(response), "data")
    rejection = TABLE.classify(response)
    if rejection.reason is not Reason.SCOPE_MISSING:
        raise rejection
    missing, other = limits.SCOPE_DIRECT, limits.SCOPE_DRAFT
    if draft:
        missing, other = other, missing
    raise Rejected(
        f"The connection lacks TikTok's permission {missing}: {how_to_grant(missing, section.scopes)} and grant it.",
        status=rejection.status,
        reason=rejection.reason,
        # The other way of publishing may remain: then the connection is kept.
        reauth=bool(scopes) and other not in scopes,
        code=rejection.code,
        request_id=rejection.request_id,
    )


def how_to_grant(scope: str, asked: Sequence[str]) -> str:
    """Return what the owner does about a missing scope; `asked` are the scopes that accounts are connected with."""
    first = "" if not asked or scope in asked else "add it to scopes of [providers.tiktok], then "
    return f"{first}connect the account again"


# --- refusals ---------------------------------------------------------------------------------------------------------

DAY_SECONDS = 24 * 3600.0
DIRECT_STEPS = frozenset({CREATOR, INIT_VIDEO, INIT_PHOTOS})
"""The calls that only a direct post makes, and that TikTok can refuse."""
MIN_PAUSE_SECONDS = 60.0
"""TikTok's windows are a minute long, and it documents no time to wait."""
SCOPE_CODES = frozenset({"scope_not_authorized", "scope_permission_missed"})
UNKNOWN_TASK = frozenset({"invalid_publish_id", "token_not_authorized_for_specified_publish_id"})
INVALID = frozenset({"invalid_param", "invalid_params"})

RATE_LIMITED = "TikTok's rate limit is reached."
NOT_ACCEPTED = "TikTok does not accept the access token."

BANNED = ErrorRow(
    "TikTok bars this account from posting; the account was left alone for a day. See what TikTok's app says there.",
    codes={"spam_risk_user_banned_from_posting"},
    rest_seconds=DAY_SECONDS,
    content=False,
)
TOO_MANY_POSTS = ErrorRow(
    "The account has reached TikTok's posts through apps for 24 hours (about 15, all apps together).",
    codes={"spam_risk_too_many_posts"},
    action=Action.WAIT,
    wait_seconds=DAY_SECONDS,
)

ROWS: tuple[ErrorRow, ...] = (
    ErrorRow(RATE_LIMITED, codes={"rate_limit_exceeded"}, action=Action.WAIT),
    # The token, and the app.
    ErrorRow(NOT_ACCEPTED, codes={"access_token_invalid"}, action=Action.REFRESH),
    ErrorRow(codes=SCOPE_CODES, reason=Reason.SCOPE_MISSING, content=False),
    # The account. Of a full app only the accounts that have not posted in these 24 hours are refused.
    ErrorRow("The TikTok app has reached its number of posting accounts for 24 hours (5 while it is not audited). "
             "Direct posts of this account wait. Its drafts and other accounts continue.",
             codes={"reached_active_user_cap"}, action=Action.WAIT, wait_seconds=DAY_SECONDS, steps=DIRECT_STEPS),
    TOO_MANY_POSTS,
    ErrorRow("Five drafts of the last 24 hours wait in the TikTok inbox: finish them in the app.",
             codes={"spam_risk_too_many_pending_share"}, action=Action.WAIT, wait_seconds=DAY_SECONDS),
    BANNED,
    # The post.
    ErrorRow("The TikTok app is not audited: set the account itself to private in TikTok's app and privacyLevel to "
             'SELF_ONLY, or use mode "draft".', codes={"unaudited_client_can_only_post_to_private_accounts"}),
    ErrorRow("TikTok fetches photos only from addresses verified for the app: verify the domain of base_url, or its "
             "prefix of media, under URL properties at developers.tiktok.com (in the app's production configuration).",
             codes={"url_ownership_unverified"}, content=False),
    ErrorRow("The account does not offer this privacyLevel any more: choose another one and post again.",
             codes={"privacy_level_option_mismatch"}),
    ErrorRow("Photo drafts need TikTok's app in version 31.8 or newer: update it, then create the post again.",
             codes={"app_version_check_failed"}, content=False),
    ErrorRow("Check the text, the options and the media; otherwise it is a fault of socialpub.", codes=INVALID),
    ErrorRow("TikTok does not know the post's publish_id, or no longer: look at the profile.",
             codes={"invalid_publish_id"}, content=False),
    ErrorRow("TikTok says that the post's publish_id belongs to another account: look at the profile.",
             codes={"token_not_authorized_for_specified_publish_id"}, content=False),
    # TikTok's own faults: the call may still have happened.
    ErrorRow(codes={"ok", "internal_error"}, action=Action.NO_ANSWER),
    ErrorRow(statuses=frozenset(range(500, 1000)), action=Action.NO_ANSWER),
)  # fmt: skip
UNLISTED = ErrorRow()

FAIL_REASONS: tuple[ErrorRow, ...] = (
    ErrorRow("TikTok refused the file format. Videos: MP4, MOV or WebM with H.264, H.265, VP8 or VP9; photos: JPEG or "
             "WebP.", codes={"file_format_check_failed"}),
    ErrorRow("TikTok refused the duration: at most what it allows this creator (3 to 10 minutes).",
             codes={"duration_check_failed"}),
    ErrorRow("TikTok refused the frame rate: 23 to 60 frames a second.", codes={"frame_rate_check_failed"}),
    ErrorRow("TikTok refused the picture size. Videos: 360 to 4096 pixels each side; photos: the shorter side at most "
             "1080, at most 20 MB. One such photo fails the whole post.", codes={"picture_size_check_failed"}),
    ErrorRow("TikTok had a fault of its own while it processed the post.", codes={"internal"}, action=Action.RESTART,
             wait_seconds=600.0),
    ErrorRow("TikTok could not fetch the media: base_url must be reachable from the internet by https, without "
             "redirects.", codes={"video_pull_failed", "photo_pull_failed"}, action=Action.RESTART,
             wait_seconds=300.0),
    ErrorRow("The post was cancelled at TikTok. Create it again if it should still go out.",
             codes={"publish_cancelled"}, content=False),
    ErrorRow("The account's permission was taken back while TikTok processed the post.", codes={"auth_removed"},
             action=Action.RECONNECT),
    TOO_MANY_POSTS,
    BANNED,
    ErrorRow("TikTok takes the text for spam: change the caption and create the post again.",
             codes={"spam_risk_text"}),
    ErrorRow("TikTok takes the post for spam. Do not send it again as it is.", codes={"spam_risk"}),
)  # fmt: skip


def read_error(response: HttpResponse) -> ErrorBody:
    """Read the `error` of an envelope, whose code is `ok` when nothing failed."""
    error = object_at(json_object(response), "error")
    code = text_at(error, "code")
    return ErrorBody(
        shortened(text_at(error, "message")),
        code,
        {code} if code else frozenset(),
        request_id=text_at(error, "log_id") or text_at(error, "logid"),
        own_form=code is not None,
    )


def named_wait(response: HttpResponse) -> float | None:
    """Return how long TikTok asks to wait, a minute at least; None when it names no time. Zero and less is returned as
    it is."""
    named = retry_after_seconds(response)
    return max(named, MIN_PAUSE_SECONDS) if named is not None and named > 0 else named


def _message(row: ErrorRow, status: int, body: ErrorBody, _: float | None) -> str:
    if row.action is Action.NO_ANSWER:
        return f"TikTok gave no usable answer (HTTP {status})."
    quoted = f'"{body.message}"' if body.message else f"HTTP {status}"
    trace = f" (log_id {body.request_id})" if body.request_id else ""
    if row is UNLISTED:
        return f"TikTok refused: {quoted}, {body.code or 'without a code'}{trace}."
    if body.code in INVALID:
        return f"TikTok refused: {quoted}{trace}. {row.advice}"
    return row.advice


TABLE = ErrorTable("TikTok", ROWS, UNLISTED, read_error, lambda response, *_: named_wait(response), _message)
