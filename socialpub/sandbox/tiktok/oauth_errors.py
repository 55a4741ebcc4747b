"""How the token endpoints word the errors that a script asks for: flat, where everything else has an envelope."""

from dataclasses import dataclass
from typing import Protocol

from socialpub.sandbox.reply import Reply, json_reply


class LogIds(Protocol):
    def log_id(self) -> str: ...


@dataclass(frozen=True, slots=True)
class OAuthErrorReplies:
    log_ids: LogIds

    def http_error(self, status: int) -> Reply:
        return self._reply(status, "server_error" if status >= 500 else "invalid_request")

    def unauthorized_reply(self) -> Reply:
        return self._reply(401, "invalid_client")

    def rate_limited_reply(self, seconds: float, told_in: str) -> Reply:
        reply = self._reply(429, "rate_limit_exceeded")
        if told_in == "retry-after":
            reply.headers.append(("retry-after", str(int(seconds))))
        return reply

    def credits_reply(self, shape: int) -> Reply:  # noqa: ARG002
        raise ValueError("tiktok sells no credits")

    def refusal_reply(self, endpoint: str, code: str) -> Reply:  # noqa: ARG002
        return self._reply(400, code)

    def _reply(self, status: int, error: str) -> Reply:
        facts = {"error": error, "error_description": "Something is wrong.", "log_id": self.log_ids.log_id()}
        return json_reply(status, facts)
