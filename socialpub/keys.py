"""API keys: who calls, and what that caller may see and do (contract section 2)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Caller:
    """The key behind a request. `providers` and `profiles` are its limits; None means no limit; both must hold."""

    key_id: str
    scope: str
    providers: frozenset[str] | None = None
    profiles: frozenset[str] | None = None

    @property
    def limited(self) -> bool:
        return self.providers is not None or self.profiles is not None

    def sees(self, provider: str, profile_id: str) -> bool:
        """Whether a profile is in this key's scope."""
        return (self.providers is None or provider in self.providers) and (
            self.profiles is None or profile_id in self.profiles
        )
