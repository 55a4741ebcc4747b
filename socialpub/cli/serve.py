"""`socialpub serve`: the web server in this process, and the worker as its child."""

import sys
import threading

import click

from socialpub.accounts import password, sign_in_links
from socialpub.accounts.sign_in_links import Purpose
from socialpub.cli.child_process import end_with_parent, end_with_parent_option
from socialpub.cli.context import CommandContext, pass_command_context
from socialpub.cli.init import create_if_missing
from socialpub.cli.output import print_note
from socialpub.cli.worker_supervisor import WorkerSupervisor
from socialpub.ops.notify import findings
from socialpub.runtime import Runtime
from socialpub.web import listeners, server


@click.command()
@end_with_parent_option
@click.option("--init", "create", is_flag=True, help="First do what `init` does, where there is no configuration.")
@pass_command_context
def serve(context: CommandContext, stop_seconds: float | None, create: bool) -> None:
    """Run the appliance: web and worker together, until Ctrl-C or SIGTERM."""
    end_with_parent(stop_seconds)
    if create:
        create_if_missing(context)
    with context.start("web") as rt:
        findings.refuse_wrong_addresses(rt.settings)
        supervisor = WorkerSupervisor(rt.settings.config_file)
        # Both stop at the same moment; the web server sets `stopping` when it is asked to stop.
        threading.Thread(target=_stop_together, args=(rt.stopping, supervisor), daemon=True).start()
        # A second `serve` finds its port in use before its worker could take the first one's place.
        sockets = listeners.open_for(rt)
        _offer_dashboard(rt)
        supervisor.start()
        try:
            code = server.run(rt, sockets)
        finally:
            supervisor.stop()
    sys.exit(code)


def _offer_dashboard(rt: Runtime) -> None:
    """Tell how to set the dashboard's first password, to whoever sees this terminal."""
    if rt.settings.dashboard.enabled and not password.is_set(rt.reader):
        token = rt.write(sign_in_links.make, Purpose.SET_UP)
        print_note(f"Set the dashboard's password, once, within a day: {rt.settings.base_url}/setup?token={token}")


def _stop_together(stopping: threading.Event, supervisor: WorkerSupervisor) -> None:
    stopping.wait()
    supervisor.request_stop()
