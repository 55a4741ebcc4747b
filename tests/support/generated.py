"""How much a generated test draws: a few fixed examples in `make test`, many fresh ones in `make endurance`."""

from hypothesis import settings


def examples(few: int, many: int) -> int:
    """Return how many examples to draw under the profile of this run."""
    return few if settings.get_current_profile_name() == "tests" else many
