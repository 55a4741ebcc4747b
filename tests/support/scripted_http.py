"""A network of which only the answers are written down: what was asked is kept, and nothing leaves the test."""

import json
from typing import Any

from socialpub.providers.http import Http
from socialpub.providers.responses import HttpResponse


class Answering(Http):
    """Answers its calls one after the other; a mapping is sent as JSON. The last answer is given for ever."""

    def __init__(
        self, *answers: HttpResponse | dict[str, Any], status: int = 200, calls: list[Any] | None = None
    ) -> None:
        super().__init__()
        self._answers = [
            answer if isinstance(answer, HttpResponse) else HttpResponse(status, {}, json.dumps(answer).encode())
            for answer in answers
        ]
        self.calls: list[dict[str, Any]] = [] if calls is None else calls

    def call(self, method: str, url: str, **kwargs: Any) -> HttpResponse:
        self.calls.append({"method": method, "url": url, **kwargs})
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
