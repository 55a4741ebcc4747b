"""`serve`, `web`, `worker`: the processes that stay."""

import sys
import threading
from typing import TYPE_CHECKING

import click

from socialpub.cli.context import Appliance, pass_appliance

if TYPE_CHECKING:
    from socialpub.cli.worker_supervisor import Companion


@click.command(short_help="Run the appliance: web and worker together.")
@click.option("--leashed", type=float, hidden=True, help="End within SECONDS when standard input ends.")
@pass_appliance
def serve(appliance: Appliance, leashed: float | None) -> None:
    """Run the appliance: web and worker together, until Ctrl-C or SIGTERM."""
    from socialpub.cli.child_process import obey
    from socialpub.cli.worker_supervisor import Companion
    from socialpub.web import server

    obey(leashed)
    with appliance.start("web") as rt:
        companion = Companion(rt.settings.config_file)
        # Both stop at the same moment; the web server sets `stopping` when it is told to.
        threading.Thread(target=_stop_together, args=(rt.stopping, companion), daemon=True).start()
        # A second `serve` finds its port in use before its worker could take the first one's place.
        for sock in server.listen(rt.settings):
            sock.close()
        companion.start()
        try:
            code = server.run(rt)
        finally:
            companion.end()
    sys.exit(code)


def _stop_together(stopping: threading.Event, companion: "Companion") -> None:
    stopping.wait()
    companion.let_go()


@click.command(short_help="Run the web server alone.")
@pass_appliance
def web(appliance: Appliance) -> None:
    """Run the web server alone: the API, uploads and stored media."""
    from socialpub.web import server

    with appliance.start("web") as rt:
        code = server.run(rt)
    sys.exit(code)


@click.command(short_help="Run the worker alone.")
@click.option("--leashed", type=float, hidden=True, help="End within SECONDS when standard input ends.")
@pass_appliance
def worker(appliance: Appliance, leashed: float | None) -> None:
    """Run the worker alone: it publishes what is due."""
    from socialpub.cli.child_process import obey
    from socialpub.worker import process

    obey(leashed)
    with appliance.start("worker") as rt:
        code = process.run(rt)
    sys.exit(code)
