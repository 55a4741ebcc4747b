"""The appliance that a command is about: its configuration, and its parts while the command runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from socialpub.core.clock import Clock
    from socialpub.core.settings.loader import Settings
    from socialpub.runtime import Runtime


@dataclass
class Appliance:
    config: Path | None = None
    parts: dict[str, Any] = field(default_factory=dict)
    """Handed to `runtime.build`: a test's clock and networks."""

    def settings(self) -> "Settings":
        from socialpub.core.settings import loader

        return loader.load(self.config)

    def clock(self) -> "Clock":
        from socialpub.core.clock import SystemClock

        return self.parts.get("clock") or SystemClock()

    @contextmanager
    def open(self, role: str = "admin") -> Iterator["Runtime"]:
        """The parts, for a command that ends soon. Of the log only warnings are shown."""
        from socialpub import runtime
        from socialpub.core import logging
        from socialpub.core.settings.sections import LoggingSection

        settings = self.settings()
        logging.configure(LoggingSection(level="warning"))
        rt = runtime.build(settings, role=role, **self.parts)
        try:
            yield rt
        finally:
            rt.close()

    @contextmanager
    def start(self, role: str) -> Iterator["Runtime"]:
        """The parts, for a process that stays: with the wake-up, and the log as it is configured."""

        from socialpub import runtime
        from socialpub.core import logging
        from socialpub.worker.wakeup import HueyWakeup

        settings = self.settings()
        logging.configure(settings.logging)
        for note in settings.notes():
            logging.get_logger("socialpub.cli.appliance").warning(note)
        rt = runtime.build(settings, role=role, **self.parts)
        try:
            wakeup = rt.wakeup = HueyWakeup(settings.queue_file, settings.run_dir)
            try:
                yield rt
            finally:
                wakeup.close()
        finally:
            rt.close()


pass_appliance = click.make_pass_decorator(Appliance, ensure=True)
