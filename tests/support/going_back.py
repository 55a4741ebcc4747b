"""What the engine does with an `Again`, for tests of one network without it."""

from socialpub.providers.base import Again, Outcome


def counted(outcome: Outcome, back: dict[str, int]) -> Outcome:
    """The outcome as the engine settles it; `back` holds how often each reason led back, and is counted on."""
    if not isinstance(outcome, Again):
        return outcome
    times = back.get(outcome.reason, 0)
    result = outcome.after(times)
    if isinstance(result, Again):
        back[outcome.reason] = times + 1
    return result
