"""Callers that ask again and again, while something happens to those who answer."""

import http.client
import threading
from collections import Counter
from urllib.parse import urlsplit

PAUSE_SECONDS = 0.02
"""At any moment, some connections are busy and some are idle. A starting process also gets processor time."""


class Load(threading.Thread):
    """One keep-alive connection that sends request after request, and begins a new one on request."""

    def __init__(self, url: str, key: str, number: int, requests: list[tuple[str, str, bytes | None]]) -> None:
        super().__init__(daemon=True)
        self.answered: Counter[int] = Counter()
        self.broken: list[str] = []
        """Requests over a connection that had been kept alive, which got no whole answer."""
        self.refused = 0
        """Requests over a new connection that got no whole answer."""
        self.enough = threading.Event()
        self._address = urlsplit(url).netloc
        self._headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        self._requests = requests
        self._number = number

    def run(self) -> None:
        turn, kept = self._number, False
        connection = http.client.HTTPConnection(self._address, timeout=120)
        while not self.enough.is_set():
            method, path, body = self._requests[turn % len(self._requests)]
            turn += 1
            try:
                connection.request(method, path, body, self._headers)
                answer = connection.getresponse()
                answer.read()
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                if kept:
                    self.broken.append(f"{method} {path}: {error!r}")
                else:
                    self.refused += 1
                    self.enough.wait(0.05)
                kept = False
            else:
                self.answered[answer.status] += 1
                kept = not answer.will_close
                if not kept:
                    connection.close()  # the next request opens it again
                self.enough.wait(PAUSE_SECONDS)
        connection.close()
