"""Authorization codes: what an account agreed to, until the app exchanges it for tokens. Each works once."""

from dataclasses import dataclass

from socialpub.sandbox.context import SandboxClock


@dataclass(slots=True)
class AuthorizationCode:
    client_id: str
    redirect_uri: str
    account_id: str
    scopes: tuple[str, ...]
    expires_at: float
    """Unix seconds."""
    challenge: str = ""
    """Empty: the app sent none."""
    method: str = ""
    """Of the challenge: `S256` or `plain`."""


class AuthorizationCodes:
    def __init__(self, clock: SandboxClock) -> None:
        self._clock = clock
        self._codes: dict[str, AuthorizationCode] = {}

    def __getitem__(self, text: str) -> AuthorizationCode:
        return self._codes[text]

    def add(self, text: str, code: AuthorizationCode) -> None:
        self._codes[text] = code

    def redeem(self, text: str, client_id: str) -> AuthorizationCode | None:
        """The code, while it is good and this app's; whoever asks, it is used up."""
        code = self._codes.pop(text, None)
        if code is None or code.client_id != client_id or self._clock.now().timestamp() >= code.expires_at:
            return None
        return code
