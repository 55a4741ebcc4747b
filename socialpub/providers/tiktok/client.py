"""One call to TikTok's posting endpoints for a job or an owner, and the table of TikTok's refusals.

The code in the body decides, never the HTTP status or the wording: some refusals have status 200. A body without a code
is not from TikTok. A refusal without a row ends the post with TikTok's own message.
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
"""The timeout of a call for a page."""


def call(job: Job, section: TikTokSection, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Call TikTok and return the `data`. Raises `ProviderError`.

    `path` is below `/v2/` and includes the closing slash and the query.
    """
    response = job.call("POST", f"{section.api_url}/v2/{path}", token=job.token, headers=JSON, json=body)
    error = read_error(response)
    job.trace.request_id = error.request_id or job.trace.request_id
    job.trace.code = None if error.code == "ok" else error.code or str(response.status)
    return _data(response, section, job.account.scopes, draft=is_draft(job.options))


def ask(http: Http, section: TikTokSection, path: str, token: str, scopes: Set[str]) -> dict[str, Any]:
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
        f"The connection lacks the TikTok permission {missing}. {how_to_grant(missing, section.scopes)}",
        status=rejection.status,
        reason=rejection.reason,
        # The connection is kept while the other way of publishing remains.
        reauth=bool(scopes) and other not in scopes,
        code=rejection.code,
        request_id=rejection.request_id,
    )


def how_to_grant(scope: str, asked: Sequence[str]) -> str:
    """Return the remedy for a missing scope. `asked` are the scopes that the app requests."""
    if not asked or scope in asked:
        return "Connect the account again and grant this permission."
    return (
        "Add this permission to scopes in [providers.tiktok]. Then connect the account again and grant the permission."
    )


# --- refusals ---------------------------------------------------------------------------------------------------------

DAY_SECONDS = 24 * 3600.0
DIRECT_STEPS = frozenset({CREATOR, INIT_VIDEO, INIT_PHOTOS})
"""The calls of direct posts only."""
MIN_PAUSE_SECONDS = 60.0
"""TikTok's rate limits have windows of a minute, and TikTok does not document `Retry-After`."""
SCOPE_CODES = frozenset({"scope_not_authorized", "scope_permission_missed"})
UNKNOWN_TASK = frozenset({"invalid_publish_id", "token_not_authorized_for_specified_publish_id"})
INVALID = frozenset({"invalid_param", "invalid_params"})

RATE_LIMITED = "TikTok's rate limit is reached."
NOT_ACCEPTED = "TikTok does not accept the access token."

BANNED = ErrorRow(
    "TikTok has banned this account from posting. socialpub pauses the account for a day. Check TikTok's app.",
    codes={"spam_risk_user_banned_from_posting"},
    rest_seconds=DAY_SECONDS,
    content=False,
)
TOO_MANY_POSTS = ErrorRow(
    "The account has reached TikTok's limit of posts through apps in 24 hours (about 15 for all apps).",
    codes={"spam_risk_too_many_posts"},
    action=Action.WAIT,
    wait_seconds=DAY_SECONDS,
)

ROWS: tuple[ErrorRow, ...] = (
    ErrorRow(RATE_LIMITED, codes={"rate_limit_exceeded"}, action=Action.WAIT),
    # The token, and the app.
    ErrorRow(NOT_ACCEPTED, codes={"access_token_invalid"}, action=Action.REFRESH),
    ErrorRow(codes=SCOPE_CODES, reason=Reason.SCOPE_MISSING, content=False),
    # The account. An app at its limit still serves the accounts that have posted in these 24 hours.
    ErrorRow("The TikTok app has reached its limit of posting accounts in 24 hours (5 for an unaudited app). "
             "Direct posts of this account wait. Drafts and other accounts continue.",
             codes={"reached_active_user_cap"}, action=Action.WAIT, wait_seconds=DAY_SECONDS, steps=DIRECT_STEPS),
    TOO_MANY_POSTS,
    ErrorRow("Five drafts of the last 24 hours are in the TikTok inbox. Finish these drafts in TikTok's app.",
             codes={"spam_risk_too_many_pending_share"}, action=Action.WAIT, wait_seconds=DAY_SECONDS),
    BANNED,
    # The post.
    ErrorRow("TikTok has not audited the app. Set the account to private in TikTok's app and set privacyLevel to "
             'SELF_ONLY, or use mode "draft".', codes={"unaudited_client_can_only_post_to_private_accounts"}),
    ErrorRow("TikTok fetches photos only from URLs that are verified for the app. At developers.tiktok.com, open "
             "URL properties in the app's production configuration. Verify the domain of base_url or its media prefix.",
             codes={"url_ownership_unverified"}, content=False),
    ErrorRow("TikTok no longer offers this privacyLevel to the account. Choose another level and create the post "
             "again.", codes={"privacy_level_option_mismatch"}),
    ErrorRow("Photo drafts need version 31.8 or newer of TikTok's app. Update the app, then create the post again.",
             codes={"app_version_check_failed"}, content=False),
    ErrorRow("Check the text, the options and the media. If they are correct, report a bug in socialpub.",
             codes=INVALID),
    ErrorRow("TikTok does not know the post's publish_id. Check the profile on TikTok.",
             codes={"invalid_publish_id"}, content=False),
    ErrorRow("TikTok reports that the post's publish_id belongs to another account. Check the profile on TikTok.",
             codes={"token_not_authorized_for_specified_publish_id"}, content=False),
    # Errors inside TikTok: the call may still have had its effect.
    ErrorRow(codes={"ok", "internal_error"}, action=Action.NO_ANSWER),
    ErrorRow(statuses=frozenset(range(500, 1000)), action=Action.NO_ANSWER),
)  # fmt: skip
UNLISTED = ErrorRow()

FAIL_REASONS: tuple[ErrorRow, ...] = (
    ErrorRow("TikTok refused the file format. Videos must be MP4, MOV or WebM with H.264, H.265, VP8 or VP9. Photos "
             "must be JPEG or WebP.", codes={"file_format_check_failed"}),
    ErrorRow("TikTok refused the duration. TikTok allows each creator at most 3 to 10 minutes.",
             codes={"duration_check_failed"}),
    ErrorRow("TikTok refused the frame rate. Use 23 to 60 frames per second.", codes={"frame_rate_check_failed"}),
    ErrorRow("TikTok refused the image size. Videos need 360 to 4096 pixels on each side. Photos may have at most "
             "1080 pixels on the shorter side, and 20 MB. One larger photo fails the whole post.",
             codes={"picture_size_check_failed"}),
    ErrorRow("TikTok had an internal error while it processed the post.", codes={"internal"}, action=Action.RESTART,
             wait_seconds=600.0),
    ErrorRow("TikTok could not fetch the media. base_url must be reachable from the internet by https, without "
             "redirects.", codes={"video_pull_failed", "photo_pull_failed"}, action=Action.RESTART,
             wait_seconds=300.0),
    ErrorRow("The post was canceled at TikTok. To publish the post anyway, create the post again.",
             codes={"publish_cancelled"}, content=False),
    ErrorRow("The account's permission was removed while TikTok processed the post.", codes={"auth_removed"},
             action=Action.RECONNECT),
    TOO_MANY_POSTS,
    BANNED,
    ErrorRow("TikTok treats the text as spam. Change the caption and create the post again.",
             codes={"spam_risk_text"}),
    ErrorRow("TikTok treats the post as spam. Change the post before you create it again.", codes={"spam_risk"}),
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
    """Return the wait in TikTok's response, at least a minute, or None. Zero and less stay unchanged."""
    named = retry_after_seconds(response)
    return max(named, MIN_PAUSE_SECONDS) if named is not None and named > 0 else named


def _message(row: ErrorRow, status: int, body: ErrorBody, _: float | None) -> str:
    if row.action is Action.NO_ANSWER:
        return f"TikTok sent no usable response (HTTP {status})."
    quoted = f'"{body.message}"' if body.message else f"HTTP {status}"
    trace = f" (log_id {body.request_id})" if body.request_id else ""
    if row is UNLISTED:
        return f"TikTok refused the request: {quoted}, {body.code or 'without a code'}{trace}."
    if body.code in INVALID:
        return f"TikTok refused the request: {quoted}{trace}. {row.advice}"
    return row.advice


TABLE = ErrorTable("TikTok", ROWS, UNLISTED, read_error, lambda response, *_: named_wait(response), _message)
