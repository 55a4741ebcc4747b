"""An event loop whose timers count by hand: a deadline passes when a test says so, however slow the machine is."""

import asyncio


class HandLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._seconds = 0.0
        super().__init__()

    def time(self) -> float:
        return self._seconds

    def forward(self, seconds: float) -> None:
        """Time passes for everything that waits on this loop. For another thread than the loop's own."""

        def move() -> None:
            self._seconds += seconds

        try:
            self.call_soon_threadsafe(move)
        except RuntimeError:
            return  # the loop is closed, so no caller waits
