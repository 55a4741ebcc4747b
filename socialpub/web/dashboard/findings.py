"""`/system/findings`: what the doctor says. It asks the networks, which may take a while."""

from socialpub.accounts.remedies import Door
from socialpub.ops import doctor
from socialpub.ops.finding import Finding, Level
from socialpub.runtime import Runtime
from socialpub.web import aside
from socialpub.web.answer import Answer
from socialpub.web.dashboard.page import page
from socialpub.web.dashboard.visit import Visit

_ORDER = (Level.PROBLEM, Level.NOTE, Level.OK)


@page()
async def show(rt: Runtime, visit: Visit) -> Answer:
    """Every finding, what must be fixed first."""
    found = await aside.run(lambda: _examine(rt))
    return visit.show(
        "findings.html",
        findings=sorted(found, key=lambda finding: _ORDER.index(finding.level)),
        problems=sum(finding.level is Level.PROBLEM for finding in found),
    )


def _examine(rt: Runtime) -> list[Finding]:
    found, can_be_opened = doctor.check_offline(rt.settings)
    return found + (list(doctor.check(rt, Door.DASHBOARD)) if can_be_opened else [])
