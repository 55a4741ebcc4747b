"""What a command works with: the configuration, and the appliance's parts while the command runs."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    # Every command has this file, and `socialpub --help` must not wait for pydantic and the rest. There is no circle.
    from socialpub.core.clock import Clock
    from socialpub.core.settings.loader import Settings
    from socialpub.db.transaction import Tx
    from socialpub.ops.file_owners import FileFault
    from socialpub.runtime import Runtime


@dataclass
class CommandContext:
    config: Path | None = None
    parts: dict[str, Any] = field(default_factory=dict)
    """Handed to `runtime.build`: a test's clock and networks."""
    find_fault: "Callable[[BaseException], FileFault | None] | None" = None
    """Finds out why a file cannot be used, from the moment when the settings are known."""

    def settings(self) -> "Settings":
        from socialpub.core.settings import loader

        # Imported before a failure: with too many open files, nothing can be imported.
        from socialpub.ops import file_faults

        settings = loader.load(self.config)
        self.find_fault = partial(file_faults.find, settings=settings)
        return settings

    def clock(self) -> "Clock":
        from socialpub.core.clock import SystemClock

        return self.parts.get("clock") or SystemClock()

    @contextmanager
    def open(self, role: str = "admin") -> Iterator["Runtime"]:
        """The parts, for a command that ends soon. Of the log only warnings are shown."""
        from socialpub import runtime
        from socialpub.accounts import usage
        from socialpub.cli import file_owner
        from socialpub.core import actor, logging
        from socialpub.core.errors import SocialpubError
        from socialpub.core.settings.sections import LoggingSection

        settings = self.settings()
        file_owner.refuse_root(settings)
        logging.configure(LoggingSection(level="warning"))
        rt = runtime.build(settings, role=role, **self.parts)
        try:
            with actor.acting(actor.COMMAND):
                yield rt
                with suppress(SocialpubError):
                    usage.write_calls(rt)
        finally:
            rt.close()

    @contextmanager
    def start(self, role: str) -> Iterator["Runtime"]:
        """The parts, for a process that stays (`web`, `worker`): with the wake-up, and the log as it is configured."""

        from socialpub import runtime
        from socialpub.accounts.remedies import Door
        from socialpub.cli import file_owner, web_lock
        from socialpub.core import logging, service_manager
        from socialpub.ops import configuration_in_use, resume_sentences
        from socialpub.worker.wakeup import HueyWakeup

        manager = service_manager.take_over(os.environ)
        settings = self.settings()
        file_owner.refuse_root(settings)
        logging.configure(settings.logging)
        for note in (*settings.notes(), *settings.half_credentials()):
            logging.get_logger("socialpub.cli.appliance").warning(note)
        with ExitStack() as opened:
            if role == "web":
                opened.enter_context(web_lock.held(settings, manager.addresses))
            with manager.starting("Opening the database: after an upgrade a large one takes minutes"):
                rt = runtime.build(settings, role=role, service_manager=manager, **self.parts)
            opened.callback(rt.close)
            wakeup = rt.wakeup = HueyWakeup(settings.queue_file, settings.run_dir)
            opened.callback(wakeup.close)
            configuration_in_use.write_down(rt)
            rt.write(_note_version)
            if role == "worker" and (told := resume_sentences.paused(rt.reader, Door.SHELL)) is not None:
                logging.get_logger("socialpub.cli.appliance").warning(" ".join(told))
            yield rt


def _note_version(_: "Runtime", tx: "Tx") -> None:
    """Record which version delivers from this database: its next upgrade names the backup after it."""
    from socialpub.core import version
    from socialpub.db import appliance_state

    if appliance_state.get(tx, appliance_state.VERSION) != version.current():
        appliance_state.put(tx, appliance_state.VERSION, version.current())


pass_command_context = click.make_pass_decorator(CommandContext, ensure=True)
