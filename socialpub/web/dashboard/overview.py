"""`/`: what needs the owner first, then what goes out next and what went out."""

from socialpub.runtime import Runtime
from socialpub.web.answer import Answer
from socialpub.web.dashboard.page import page
from socialpub.web.dashboard.visit import Visit
from socialpub.web.pages import home
from socialpub.web.request import Request


async def front(request: Request) -> Answer | None:
    """The overview for a browser; for a program what there is."""
    return await (show(request) if request.prefers_page() else home.show(request))


@page()
async def show(rt: Runtime, visit: Visit) -> Answer:
    """The first page."""
    return visit.show("overview.html")
