"""The generators of an episode. Each part of the world has its own, so that no other part shifts what it draws."""

import random


class Draws:
    """The generators of one episode of a seed."""

    def __init__(self, seed: int, number: int) -> None:
        self._origin = f"{seed}:{number}"

    def of(self, part: str) -> random.Random:
        """Return a new generator for this part, always with the same draws."""
        return random.Random(f"{self._origin}:{part}")
