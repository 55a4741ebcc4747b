"""What becomes of the next uploads, before the network's own setting counts again."""

from collections import deque


class FateQueue(deque[str]):
    def __init__(self, known: tuple[str, ...]) -> None:
        super().__init__()
        self._known = known

    def schedule(self, fate: str, times: int = 1) -> None:
        """A name that is not known is ValueError."""
        self.check(fate)
        self.extend([fate] * times)

    def take(self, usual: str) -> str:
        fate = self.popleft() if self else usual
        self.check(fate)
        return fate

    def check(self, fate: str) -> None:
        if fate not in self._known:
            raise ValueError(f"no such fate: {fate!r} (known: {', '.join(self._known)})")
