"""The connection of a command to an appliance: its URL, the key, and the appliance's refusals (contract 10.5.2)."""

import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlsplit

import click

from socialpub.cli.fast_import import load
from socialpub.cli.output import CommandError, print_note
from socialpub.core import commands
from socialpub.core.commands import KEY_VARIABLE, URL_VARIABLE
from socialpub.core.errors import FieldError
from socialpub.core.post_summary import Result

if TYPE_CHECKING:
    # Slow to import: `--help` and wrong arguments do not need it.
    import httpx2

CONNECT_SECONDS = 10.0
RESPONSE_SECONDS = 130.0
"""The appliance imports the media of one request for up to 100 seconds (contract 10.2.3), and then checks the files."""
PAUSE_SECONDS = (1, 2, 4, 8)
"""The pauses before repeats of a call without a response. The last call without a response ends the command."""
MAX_ASKED_SECONDS = 130.0
"""The longest time that the command waits in all if the appliance asks for repeats (`Retry-After`)."""

UNREACHABLE_HINT = "Check the URL, and check whether the appliance runs."


class NotAccepted(CommandError):
    """The appliance refused the request, or cannot be reached."""

    exit_code = 4

    def __init__(self, message: str, hint: str | None = None, retry_after_seconds: float | None = None) -> None:
        """`retry_after_seconds`: the failure is temporary, and the same call can succeed after this time."""
        super().__init__(message, hint)
        self.retry_after_seconds = retry_after_seconds


class NoResponse(NotAccepted):
    """No response of an appliance arrived. `is_open`: the appliance may have received the request."""

    def __init__(self, message: str, hint: str, *, is_open: bool) -> None:
        super().__init__(message, hint, 0)
        self.is_open = is_open


class OutcomeLost(NotAccepted):
    """A request that creates a post may have arrived, and no response says what became of it."""

    exit_code = Result.UNKNOWN

    def __init__(self, message: str) -> None:
        super().__init__(
            f"{message} The post may be accepted.",
            # Without sudo: the key belongs to this user.
            f"Run `{commands.started_with()[-1]} status` before you send it again. "
            "A command with --once KEY is safe to repeat.",
        )


class WrongState(NotAccepted):
    """The state of the post does not allow the request."""


# --- the target ------------------------------------------------------------------------------------------------------


class ApplianceTarget(NamedTuple):
    """An appliance and a key for it."""

    url: str
    key: str

    def __repr__(self) -> str:
        return f"ApplianceTarget({self.url!r})"


def load_target() -> ApplianceTarget:
    """Return the URL and the key from the environment or from the file. Raises click.UsageError."""
    target = {"url": os.environ.get(URL_VARIABLE, "").strip(), "key": os.environ.get(KEY_VARIABLE, "").strip()}
    file = _client_file()
    if file is not None and not all(target.values()):
        stored = _read_file(file)
        target = {name: value or stored.get(name, "").strip() for name, value in target.items()}
    variables = {"url": URL_VARIABLE, "key": KEY_VARIABLE}
    if missing := [variables[name] for name, value in target.items() if not value]:
        raise click.UsageError(
            f"Set {' and '.join(missing)}, or write url and key to {file or 'a client.toml'}. "
            "The page “Keys” of the dashboard creates keys."
        )
    if not (target["key"].isascii() and target["key"].isprintable() and " " not in target["key"]):
        raise click.UsageError(f"The key ({KEY_VARIABLE}) contains characters that no key has. Copy the key again.")
    return ApplianceTarget(_check_url(target["url"]), target["key"])


def _check_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_valid = False
    # The message does not repeat the URL, which may contain a password.
    if not is_valid or "@" in parts.netloc or parts.query or parts.fragment or not url.isprintable() or " " in url:
        raise click.UsageError(
            f"The URL of the appliance ({URL_VARIABLE}) must be its base_url, such as https://social.example.org. "
            "It has no user name and no query."
        )
    return url.rstrip("/")


def _client_file() -> Path | None:
    try:
        return Path.home() / ".config/socialpub/client.toml"
    except RuntimeError:  # a container may run as a user without a home
        return None


def _read_file(path: Path) -> dict[str, str]:
    import tomllib

    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise click.UsageError(f"Other users may read {path}, which contains a key. Run: chmod 600 {path}")
            if os.geteuid() not in (0, status.st_uid):
                raise click.UsageError(f"{path} belongs to another user, who may read the key. Make it your own file.")
            content = tomllib.load(file)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise click.UsageError(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError:
        # The message of the TOML reader can contain the key.
        raise click.UsageError(f'{path} is not TOML. It needs two lines: url = "…" and key = "…".') from None
    if set(content) - {"url", "key"} or not all(isinstance(value, str) for value in content.values()):
        raise click.UsageError(f'{path} may contain only two lines: url = "…" and key = "…".')
    return content


# --- calls -----------------------------------------------------------------------------------------------------------


class ApplianceConnection:
    """Calls of one appliance with one key. Every call returns the JSON of the response, or raises NotAccepted."""

    def __init__(self, client: "httpx2.Client", url: str) -> None:
        self._client = client
        self.url = url
        self.is_replay = False
        """Whether the last response repeats an earlier response to the same Idempotency-Key."""
        self.has_repeated = False
        """Whether the last call was sent more than once."""
        self._is_outcome_open = False

    def get(self, *path: str, **params: str | int) -> Any:
        return self.repeat(lambda: self._call("GET", path, params=params))

    def get_once(self, *path: str, timeout_seconds: float = RESPONSE_SECONDS, **params: str | int) -> Any:
        """Like `get`, but a failure does not cause a repeat."""
        return self._call("GET", path, params=params, timeout=timeout_seconds)

    def post(
        self, *path: str, idempotency_key: str | None = None, headers: Mapping[str, str] | None = None, **body: Any
    ) -> Any:
        """Send a request that has one effect, even if it is sent twice. Raises NotAccepted, also as OutcomeLost."""
        own = {"idempotency-key": idempotency_key} if idempotency_key else {}
        try:
            return self.repeat(lambda: self._call("POST", path, headers={**(headers or {}), **own}, **body))
        except NotAccepted as failed:
            if idempotency_key is None or not self._is_outcome_open or failed.retry_after_seconds is None:
                raise
            raise OutcomeLost(failed.message) from failed

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    def repeat(self, call: Callable[[], Any]) -> Any:
        """Return the result of the call. A temporary failure causes a repeat, up to a limit."""
        waited, self.has_repeated, self._is_outcome_open = 0.0, False, False
        for number in count():
            try:
                return call()
            except NotAccepted as failed:
                if failed.retry_after_seconds is None:
                    raise
                if isinstance(failed, NoResponse):
                    self._is_outcome_open |= failed.is_open
                    if number >= len(PAUSE_SECONDS):
                        raise
                pause = max(failed.retry_after_seconds, PAUSE_SECONDS[min(number, len(PAUSE_SECONDS) - 1)])
                if (waited := waited + pause) > MAX_ASKED_SECONDS:
                    raise
                if number == 0:
                    print_note(f"{failed.message} Trying again in {pause:.0f} s.")
                self.pause(pause)
                self.has_repeated = True
        raise AssertionError

    def _call(self, method: str, path: tuple[str, ...], **more: Any) -> Any:
        import httpx2

        url = "/".join([f"{self.url}/api/v1", *(quote(part, safe="") for part in path)])
        try:
            response = self._client.request(method, url, **more)
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            from socialpub.providers.failures import NOTHING_LEFT, describe_failure

            reason = describe_failure(error)
            message = f"{self.url} did not answer: {reason}."
            if _is_distrust(error):
                raise NotAccepted(message, UNREACHABLE_HINT) from error
            raise NoResponse(message, UNREACHABLE_HINT, is_open=not isinstance(error, NOTHING_LEFT)) from error
        self.is_replay = "idempotency-replayed" in response.headers
        if not response.is_success:
            raise _refusal(response, self.url)
        body = None
        with suppress(ValueError):
            body = response.json()
        if not isinstance(body, dict) or "data" not in body:
            hint = "Check the URL. It must be the appliance's base_url."
            raise NotAccepted(f"{self.url} is not a socialpub appliance: the response has another form.", hint)
        return body


@contextmanager
def connect() -> Iterator[ApplianceConnection]:
    """Open the connection to the configured appliance. Raises click.UsageError."""
    with open_client() as (client, url):
        yield ApplianceConnection(client, url)


@contextmanager
def open_client() -> Iterator[tuple["httpx2.Client", str]]:
    """Open a client that sends the key. Return the client, and the URL of the appliance. Raises click.UsageError."""
    target = load_target()
    # The client imports httpcore2 itself, with garbage collection.
    load("httpcore2", "httpx2")
    import httpx2

    try:
        client = httpx2.Client(
            headers={"authorization": f"Bearer {target.key}", "user-agent": "socialpub"},
            timeout=httpx2.Timeout(RESPONSE_SECONDS, connect=CONNECT_SECONDS),
            # The certificates take a third of the start. As for the networks, a proxy gets no calls to this host.
            verify=httpx2.create_ssl_context(verify=True) if target.url.startswith("https:") else _no_certificates(),
            mounts=dict.fromkeys(("all://127.0.0.1", "all://localhost", "all://[::1]")),
        )
    except (ImportError, ValueError, httpx2.InvalidURL):  # the text may contain the password of a proxy
        from socialpub.providers.failures import PROXY_REMEDY, find_unusable_proxies

        message = " ".join(find_unusable_proxies()) or "The HTTP client cannot be built."
        raise NotAccepted(message, PROXY_REMEDY) from None
    with client:
        yield client, target.url


def _no_certificates() -> Any:
    """Return a TLS context that trusts no host, for calls without TLS."""
    import ssl

    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _is_distrust(error: BaseException | None) -> bool:
    """Return whether the certificate is wrong, which no repeat changes."""
    import ssl

    if error is None or isinstance(error, ssl.SSLCertVerificationError):
        return error is not None
    return _is_distrust(error.__cause__ or error.__context__)


def _refusal(response: "httpx2.Response", url: str) -> NotAccepted:
    status, problem = response.status_code, None
    with suppress(ValueError):
        problem = response.json()
    if not isinstance(problem, dict) or not isinstance(problem.get("detail"), str):
        if response.is_redirect:
            place = urlsplit(response.headers["location"])
            to = f"{place.scheme}://{place.netloc}" if place.netloc else "another URL"
            return NotAccepted(
                f"{url} redirects to {to}.", "Use the final URL: the command sends the key to no other URL."
            )
        # A proxy answers for an appliance that restarts.
        message = f"{url} answered {status}, and not in the form of a socialpub appliance."
        hint = "Check the URL, and the proxy in front of the appliance."
        return NoResponse(message, hint, is_open=True) if status in (502, 503, 504) else NotAccepted(message, hint)
    errors = [FieldError(tuple(error["path"]), error["message"]) for error in problem.get("errors", ())]
    fields = [error.sentence for error in errors if error.message not in problem["detail"]]
    after = response.headers.get("retry-after", "")
    return (WrongState if status == 409 else NotAccepted)(
        "\n- ".join([problem["detail"], *fields]),
        retry_after_seconds=float(after) if after.isascii() and after.isdigit() else None,
    )
