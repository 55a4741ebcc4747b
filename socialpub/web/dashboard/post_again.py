"""`/posts/{postId}/again`: what failed of a post is published once more, by a new post.

Where the outcome is unknown it may be public all the same: the page leads to the account first, and wants a tick.
"""

from socialpub.accounts import profiles
from socialpub.accounts.api_keys import OWNER
from socialpub.core.errors import Conflict, FieldError, InvalidRequest
from socialpub.db.transaction import Row
from socialpub.providers.registry import LABELS
from socialpub.publishing import idempotency, retries
from socialpub.publishing.post_details import PostDetails
from socialpub.publishing.retries import RetryOutlook
from socialpub.runtime import Runtime
from socialpub.web.answer import Answer
from socialpub.web.dashboard import found_post, post_words, submissions
from socialpub.web.dashboard.page import page
from socialpub.web.dashboard.visit import Visit

UNTICKED = "Look at the account first. If the post is not there, tick this box; else there is nothing to do."
_SUBJECTS = {"profiles": "The account", "media": "The media", "providerOptions": "An option"}


@page()
async def ask(rt: Runtime, visit: Visit) -> Answer:
    """What would be published again, and the accounts to look at before."""
    details = found_post.find(rt, visit)
    outlook = retries.outlook(rt.reader, details.post["id"])
    if not outlook.certain and not outlook.unknown:
        return found_post.go(visit, alert=outlook.why)
    return _page(rt, visit, details, outlook)


@page()
async def submit(rt: Runtime, visit: Visit) -> Answer:
    """It is published again, and the new post is shown."""
    details = found_post.find(rt, visit)
    include_unknown = visit.form.ticked("includeUnknown")
    ticket = submissions.ticket(visit.form.text(submissions.FIELD) or submissions.new_id(), visit.path, [])
    kept = idempotency.find(rt, rt.reader, ticket, rt.now())
    if kept is not None:
        return visit.go(f"/posts/{kept.location}", status=submissions.SUBMITTED)
    outlook = retries.outlook(rt.reader, details.post["id"])
    if outlook.unknown and not outlook.certain and not include_unknown:
        return _page(rt, visit, details, outlook, UNTICKED)
    try:
        again = (retries.retry, details.post["id"], OWNER, include_unknown)
        new_id, is_new = await rt.write_soon(submissions.do, ticket, *again)
    except Conflict as error:
        return found_post.go(visit, alert=error.detail)
    except InvalidRequest as error:
        return found_post.go(visit, alert=f"It cannot be posted again. {' '.join(map(_sentence, error.errors))}")
    said = f"Posted again: this is the new post, {new_id}." if is_new else submissions.SUBMITTED
    return visit.go(f"/posts/{new_id}", status=said)


def _page(rt: Runtime, visit: Visit, details: PostDetails, outlook: RetryOutlook, error: str | None = None) -> Answer:
    return visit.show(
        "post_again.html",
        http_status=400 if error else 200,
        problem=f"Nothing was posted again. {error}" if error else None,
        post=details.post,
        certain=[_account(rt, row) for row in outlook.certain],
        unknown=[_account(rt, row) for row in outlook.unknown],
        error=error,
        form_id=visit.form.text(submissions.FIELD) or submissions.new_id(),
        words=post_words,
    )


def _account(rt: Runtime, delivery: Row) -> dict[str, str]:
    profile = profiles.find(rt.reader, delivery["profile_id"])
    return {
        "network": LABELS[delivery["provider"]],
        "name": delivery["profile_name"],
        "url": rt.providers[delivery["provider"]].account_url(profile.username if profile else None),
        "message": delivery["error_message"] or "",
    }


def _sentence(error: FieldError) -> str:
    subject = _SUBJECTS.get(str(error.path[0]), "It") if error.path else "It"
    return f"{subject} {error.message}."
