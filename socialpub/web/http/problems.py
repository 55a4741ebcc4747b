"""Every failure as a problem (RFC 7807): exactly the fields of the specification's section 7, wherever it happens.

A problem never shows a stack trace, a path of this machine or a secret: `detail` is written for the caller, the cause
goes to the log.
"""

from dataclasses import dataclass

import orjson

from socialpub.core import errors
from socialpub.core.errors import NotFound, SocialpubError, cut_path
from socialpub.runtime import Runtime
from socialpub.web.http.answer import Answer, Header
from socialpub.web.http.endpoint import endpoint
from socialpub.web.http.request import Request
from socialpub.web.pages import pages

PROBLEM_JSON = b"application/problem+json"


def render_problem(error: SocialpubError, base_url: str) -> Answer:
    """This failure as an answer."""
    problem: dict[str, object] = {
        "type": f"{base_url}/problems/{error.slug}",
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        "code": error.code,
    }
    if error.status == 400:
        problem["errors"] = [{"path": cut_path(item.path), "message": item.message} for item in error.errors]
    headers: list[Header] = [(name.encode(), value.encode()) for name, value in error.headers]
    if error.retry_after_seconds is not None:
        headers.append((b"retry-after", b"%d" % error.retry_after_seconds))
    return Answer(error.status, orjson.dumps(problem), tuple(headers), PROBLEM_JSON)


def answer_problem(error: SocialpubError, request: Request) -> Answer:
    """The failure of this request: a problem, or a page for a browser that is outside of the API."""
    problem = render_problem(error, request.state.rt.settings.base_url)
    if is_for_page(request):
        return Answer(problem.status, pages.failure(error), (*problem.headers, *pages.HEADERS), pages.HTML)
    return problem


def is_for_page(request: Request) -> bool:
    """Return whether a failure of this request is shown as a page: to a browser, outside of the API."""
    return not request.path.startswith(("/api/", "/storage/")) and request.prefers_page()


# --- pages about problems --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProblemPage:
    meaning: str
    remedy: str


PROBLEM_PAGES: dict[str, ProblemPage] = {
    "invalid-request": ProblemPage(
        "Something in the request cannot be accepted. `errors` names every field that fails, each with its path.",
        "Change the fields that `errors` names and send the request again. Sent unchanged it fails again.",
    ),
    "unauthorized": ProblemPage(
        "The request has no API key, or one that is not known, has expired or was revoked.",
        "Send `Authorization: Bearer <API_KEY>`. The owner makes keys in the dashboard, under Keys, where "
        "they are listed as well, or with `socialpub admin create-key NAME` and `socialpub admin list-keys`.",
    ),
    "forbidden": ProblemPage(
        "The key may read but not change anything; or a signed URL is not valid for this use, or its time is over.",
        "Use a key with the scope `write`; ask for a new URL and use it unchanged.",
    ),
    "not-found": ProblemPage(
        "There is nothing at this address: no such resource, or one outside of the key's scope.",
        "Check the id and the path, and whether the key is limited to other providers or profiles.",
    ),
    "method-not-allowed": ProblemPage(
        "The address exists but does not support this method.", "Use one of the methods that the header `Allow` names."
    ),
    "request-timeout": ProblemPage(
        "The body of the request was not complete within 20 seconds. A file that is uploaded may take longer.",
        "Send the whole request again. Nothing of it was done.",
    ),
    "conflict": ProblemPage(
        "The request is right, but what it is about is in a state that does not allow it: a post that has started can "
        "be neither changed nor canceled, a completed upload takes no more bytes, an Idempotency-Key belongs to "
        "another request or to one that still runs.",
        "Read the resource and decide by its state.",
    ),
    "payload-too-large": ProblemPage(
        "The body is larger than allowed. JSON may have 1 MiB, and 8 KiB without a valid key or session. An upload may "
        "have the bytes that were reserved for it.",
        "Send media as an upload instead of inside the JSON, and reserve uploads with their exact size.",
    ),
    "unsupported-media-type": ProblemPage(
        "This address does not read bodies of this `Content-Type`.",
        "Send `application/json`; creating a post takes `multipart/form-data` as well.",
    ),
    "rate-limited": ProblemPage(
        "Too many requests came with this key in one minute, or too many wrong keys from one address.",
        "Wait as many seconds as `Retry-After` says. `GET /api/v1/posts/{postId}?wait=30` needs no polling loop.",
    ),
    "headers-too-large": ProblemPage(
        "The request line and the headers have more than 32 KiB together.",
        "Send less in the address and in headers, and what is long in the body. Look for a cookie or a token that a "
        "proxy adds.",
    ),
    "internal-error": ProblemPage(
        "The appliance failed unexpectedly. Nothing of the request was kept unless `detail` says so.",
        "Look for the request's id (`X-Request-Id`) in the log; the line says what happened.",
    ),
    "unavailable": ProblemPage(
        "The appliance cannot do this at the moment. Its disk is full, its media quota is used up, or its database is "
        "locked. Or request bodies use all the memory that they may use, or it is being stopped.",
        "Send the same request again after the seconds of `Retry-After`. If that keeps failing, look at `/readyz`; "
        "`detail` names a quota that is used up.",
    ),
}

_KINDS = {kind.slug: kind for kind in errors.ALL}


@endpoint(scope=None)
async def show_page(rt: Runtime, caller: None, request: Request) -> Answer:  # noqa: ARG001
    """What a problem means."""
    slug = request.path_params["slug"]
    if slug not in PROBLEM_PAGES:
        raise NotFound("There is no problem of this name.")
    page = PROBLEM_PAGES[slug]
    return Answer(200, pages.problem(_KINDS[slug], page.meaning, page.remedy), pages.HEADERS, pages.HTML)
