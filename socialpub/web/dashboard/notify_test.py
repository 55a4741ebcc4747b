"""`/system/notify-test`: whether messages to the owner arrive. It asks the services, which may take a while."""

from functools import partial

from socialpub.core.errors import Conflict
from socialpub.ops.notify import sending
from socialpub.runtime import Runtime
from socialpub.web import aside
from socialpub.web.answer import Answer
from socialpub.web.dashboard.page import page
from socialpub.web.dashboard.visit import Visit


@page()
async def submit(rt: Runtime, visit: Visit) -> Answer:
    """A test message to every service, and what became of each."""
    if not rt.settings.notify.urls:
        raise Conflict("There is nobody to tell: [notify] urls is empty.")
    results = await aside.run(partial(sending.test, rt))
    refused = [f"{service.name} did not take the message: {failure}." for service, failure in results if failure]
    taken = [service.name for service, failure in results if failure is None]
    said = [*refused, *([f"Sent to {', '.join(taken)}: look whether it arrives."] if taken else [])]
    if refused:
        return visit.go("/system", alert=" ".join(said))
    return visit.go("/system", status=" ".join(said))
