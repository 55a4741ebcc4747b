"""`/system/notify…`: where notifications go, and whether they arrive. Services are asked, which may take a while.

An address is shown by its scheme and host only, as soon as it is stored.
"""

from functools import partial

from socialpub.accounts.remedies import Door
from socialpub.core.errors import Conflict, InvalidRequest, NotFound
from socialpub.ops.notify import findings, sending, services
from socialpub.ops.notify.services import Service
from socialpub.runtime import Runtime
from socialpub.web import aside
from socialpub.web.answer import Answer
from socialpub.web.dashboard import system
from socialpub.web.dashboard.page import page
from socialpub.web.dashboard.visit import Visit


@page()
async def add(rt: Runtime, visit: Visit) -> Answer:
    """One more address, as soon as Apprise has accepted it."""
    given = visit.form.text("url")
    try:
        url, name = await aside.run(partial(services.examine, given))
        await rt.write_soon(services.add, url, name)
    except InvalidRequest as error:
        return await system.render(rt, visit, notify_url=given, notify_error=f"The address {error.errors[0].message}.")
    except Conflict as error:
        return await system.render(rt, visit, notify_url=given, notify_error=error.detail)
    said = f"Notifications go to {name} from now on. “Send a test message” shows whether they arrive."
    return visit.go("/system", status=said)


@page()
async def ask_remove(rt: Runtime, visit: Visit) -> Answer:
    """What removing an address means."""
    service = _added(rt, visit)
    others = [one for one in services.list_all(rt) if one.id != service.id]
    return visit.show("notify_remove.html", service=service, others=others)


@page()
async def remove(rt: Runtime, visit: Visit) -> Answer:
    """The address is forgotten."""
    name = await rt.write_soon(services.remove, _added(rt, visit).id)
    return visit.go("/system", status=f"{name} is removed and gets no more notifications.")


@page()
async def test(rt: Runtime, visit: Visit) -> Answer:
    """A test message to every service, and what became of each."""
    if not services.list_all(rt):
        raise Conflict("There is no address to send a message to. Add one under System.")
    results = await aside.run(partial(sending.test, rt))
    refused = [f"{service.name} did not accept the message: {failure}." for service, failure in results if failure]
    taken = [service.name for service, failure in results if failure is None]
    said = [*refused, *([f"Sent to {', '.join(taken)}. Check whether it arrived."] if taken else [])]
    unknown = findings.unknown_to_processes(rt, Door.DASHBOARD)
    if unknown is not None:
        said.append(unknown)
    if refused:
        return visit.go("/system", alert=" ".join(said))
    return visit.go("/system", status=" ".join(said))


def _added(rt: Runtime, visit: Visit) -> Service:
    """The address that the path names. Raises NotFound."""
    for service in services.list_all(rt):
        if service.is_added and service.id == visit.params["addressId"]:
            return service
    raise NotFound("This address is no longer in the list.")
