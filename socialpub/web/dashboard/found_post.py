"""The post that an address names."""

from socialpub.publishing import post_details
from socialpub.publishing.post_details import PostDetails
from socialpub.runtime import Runtime
from socialpub.web.answer import Answer
from socialpub.web.dashboard import addresses
from socialpub.web.dashboard.page import nothing_here
from socialpub.web.dashboard.visit import Visit


def find(rt: Runtime, visit: Visit) -> PostDetails:
    """Everything about it. Raises NotFound."""
    details = post_details.read(rt.reader, visit.params["postId"], rt.stamp())
    if details is None:
        raise nothing_here()
    return details


def back(visit: Visit) -> str:
    """Where an action leads afterwards: to the page of ours that led here (`?back=`, and a field of that name), else to
    the post."""
    asked = visit.form.text("back") or visit.query.text("back")
    return asked if addresses.is_local(asked) else f"/posts/{visit.params['postId']}"


def go(visit: Visit, *, status: str | None = None, alert: str | None = None) -> Answer:
    """There, with what the action came to."""
    return visit.go(back(visit), status=status, alert=alert)
