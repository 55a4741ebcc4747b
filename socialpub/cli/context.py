"""The context of a command: its configuration, and the runtime while the command runs."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    # Every command imports this module, and `socialpub --help` must not wait for pydantic. There is no cycle.
    from socialpub.core.clock import Clock
    from socialpub.core.errors import OperatorError
    from socialpub.core.settings.loader import Settings
    from socialpub.db.connection import Database
    from socialpub.runtime import Runtime


@dataclass
class CommandContext:
    config: Path | None = None
    parts: dict[str, Any] = field(default_factory=dict)
    """Arguments for `runtime.build`: a test's clock and networks."""
    find_fault: "Callable[[BaseException], OperatorError | None] | None" = None
    """Returns why a file cannot be used, once the settings are loaded."""

    def settings(self) -> "Settings":
        from socialpub.core.settings import loader

        # Imported before a failure, because with too many open files no import works.
        from socialpub.ops import file_faults

        settings = loader.load(self.config)
        self.find_fault = partial(file_faults.find_fault, settings=settings)
        return settings

    def clock(self) -> "Clock":
        from socialpub.core.clock import SystemClock

        return self.parts.get("clock") or SystemClock()

    @contextmanager
    def open(self, role: str = "admin") -> Iterator["Runtime"]:
        """Build the runtime for a short command, which shows only the warnings of the log."""
        from socialpub import runtime
        from socialpub.accounts import usage
        from socialpub.cli.output import progress_bar
        from socialpub.core import actor, logging
        from socialpub.core.errors import SocialpubError
        from socialpub.core.settings.schema import LoggingSection
        from socialpub.ops import file_faults

        settings = self.settings()
        file_faults.refuse_root(settings)
        logging.configure(LoggingSection(level="warning"))
        with progress_bar():  # the first command of a new version updates the database
            rt = runtime.build(settings, role=role, **self.parts)
        try:
            with actor.act_as(actor.COMMAND):
                yield rt
                if rt.opened_http is not None:
                    with suppress(SocialpubError):
                        usage.write_calls(rt)
        finally:
            rt.close()

    @contextmanager
    def start(self, role: str) -> Iterator["Runtime"]:
        """Build the runtime for `web` or `worker`, with the wake-up and the configured log."""
        from socialpub import runtime
        from socialpub.accounts.remedies import Surface
        from socialpub.cli.output import ProgressLines
        from socialpub.core import logging, progress
        from socialpub.core.sd_notify import find_service_manager
        from socialpub.ops import alerts, file_faults, storage
        from socialpub.ops.doctor import configuration
        from socialpub.providers.registry import LABELS
        from socialpub.worker.queues import Queues

        manager = find_service_manager(os.environ)
        settings = self.settings()
        file_faults.refuse_root(settings)
        logging.configure(settings.logging)
        for note in (*settings.advice(), *settings.half_credentials()):
            logging.get_logger(__name__).warning(note)
        with ExitStack() as opened:
            if role == "web":
                opened.enter_context(storage.serve_alone(settings, manager.addresses))
            log = logging.get_logger(__name__)
            with (
                manager.starting("Opening the database (after an upgrade, this can take minutes)"),
                progress.report_to(ProgressLines(log.info)),
            ):
                rt = runtime.build(settings, role=role, service_manager=manager, **self.parts)
            opened.callback(rt.close)
            # Load everything now: the first post must not wait for imports.
            rt.http, *rt.providers.values()
            # Every network has a queue, because its owner can set it up while the appliance runs.
            queues = rt.wakeup = Queues(settings.queue_file, settings.run_dir, list(LABELS))
            opened.callback(queues.close)
            configuration.publish_configuration(rt)
            rt.write(_note_version)
            if role == "worker" and (sentences := alerts.paused_sentences(rt.db, Surface.SHELL)) is not None:
                logging.get_logger(__name__).warning(" ".join(sentences))
            yield rt


def _note_version(_: "Runtime", tx: "Database") -> None:
    """Record the version that uses this database: the next upgrade uses the version in the name of its backup."""
    from socialpub.core import version
    from socialpub.db import appliance_state

    if appliance_state.get(tx, appliance_state.VERSION) != version.VERSION:
        appliance_state.put(tx, appliance_state.VERSION, version.VERSION)


pass_command_context = click.make_pass_decorator(CommandContext, ensure=True)
