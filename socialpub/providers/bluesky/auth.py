"""Sessions at Bluesky: sign-in with an app password, refresh, sign-out and the account's identity.

The app password is sent once and not kept. Each refresh returns a new refresh token. The previous one still works for
two hours and returns the same successor, so a lost response does no harm.
"""

import base64
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from socialpub.core.settings.networks import BlueskySection
from socialpub.providers.auth import SERVER, Account, Identity, OtherServer, SignIn, SignInField, SignInRefused, Tokens
from socialpub.providers.bluesky import servers
from socialpub.providers.bluesky.client import CONNECT_AGAIN, SUSPENDED, classify, read_error
from socialpub.providers.http import Http
from socialpub.providers.responses import (
    AuthExpired,
    HttpResponse,
    NoAnswer,
    ProviderError,
    Rejected,
    as_object,
    object_at,
    parse_json,
    read_lifetime,
    text_at,
)

HANDLE, PASSWORD = "handle", "password"
APP_PASSWORDS = "In the Bluesky app, open Settings, Privacy and security, App passwords."
CREATE_ONE = f"{APP_PASSWORDS} Create an app password there and enter it here."

CREATE_SESSION = "com.atproto.server.createSession"
REFRESH_SESSION = "com.atproto.server.refreshSession"
DELETE_SESSION = "com.atproto.server.deleteSession"
GET_SESSION = "com.atproto.server.getSession"

MAIN_SCOPE = "com.atproto.access"
UNRESOLVED = "handle.invalid"
"""The server's handle of an account whose handle no longer leads to it."""

ENDED = (
    f"The session of the account has ended. Its app password may have been revoked. {CONNECT_AGAIN} "
    "A new app password may be necessary."
)
INACTIVE = {
    "deactivated": "The account is deactivated. Activate it in the Bluesky app, then connect it again.",
    "takendown": "Bluesky has taken the account down. Open the Bluesky app and follow the instructions there.",
    "suspended": "Bluesky has suspended the account. Open the Bluesky app and follow the instructions there.",
}


class BlueskySignIn(SignIn):
    refresh_early_seconds = 600
    """An access token lives for two hours."""

    idle_refresh_seconds = 30 * 86400
    """A refresh token lives for 90 days."""

    fields = (
        SignInField(HANDLE, "Handle", hint="The handle of the account, such as studio.bsky.social."),
        SignInField(PASSWORD, "App password", secret=True, hint=f"Not the account's main password. {APP_PASSWORDS}"),
    )

    def __init__(self, section: BlueskySection) -> None:
        self._section = section

    def sign_in(self, http: Http, values: Mapping[str, str], server: str | None = None) -> tuple[Identity, Tokens]:
        handle, password = clean_handle(values[HANDLE]), values[PASSWORD].strip()
        if not (servers.is_handle(handle) or servers.is_did(handle)):
            raise SignInRefused("This is not a handle. A handle looks like studio.bsky.social.", field=HANDLE)
        if not password:
            raise SignInRefused("The app password is empty.", field=PASSWORD, remedy=CREATE_ONE)
        try:
            used, session = self._create_session(http, handle, password, server)
            self._check_session(http, used, session)
            home = self._home(session, used)
            servers.pick_address(self._section, home)
        except servers.ServerRefused as error:
            raise SignInRefused(error.message, field=HANDLE) from None
        identity = self._identify(http, home, session)
        return identity, _read_tokens(session)

    def refresh(self, http: Http, account: Account, refresh_token: str) -> Tokens:
        server = account.server or self._section.service
        response = servers.ask(http, self._section, server, REFRESH_SESSION, token=refresh_token)
        if not response.ok:
            raise _ended(response)
        session = as_object(response.json())
        tokens = _read_tokens(session)
        if text_at(session, "did") != account.id:
            raise NoAnswer("The account's server returned the session of another account.")
        return Tokens(
            tokens.access_token,
            tokens.refresh_token,
            tokens.expires_in_seconds,
            tokens.refresh_expires_in_seconds,
            identity=self._identity_of_the_day(session, account),
        )

    def identify(self, http: Http, account: Account, access_token: str) -> Identity:
        server = account.server or self._section.service
        response = servers.ask(http, self._section, server, GET_SESSION, token=access_token, params={})
        if not response.ok:
            raise classify(response)
        session = as_object(response.json())
        return self._identify(http, self._home(session, server), session)

    def revoke(self, http: Http, account: Account, access_token: str, refresh_token: str | None) -> None:  # noqa: ARG002
        """End the session. The access token works for up to two more hours: the server cannot end it."""
        if refresh_token is None:
            return
        server = account.server or self._section.service
        response = servers.ask(http, self._section, server, DELETE_SESSION, token=refresh_token)
        if response.ok:
            return
        try:
            rejection = classify(response)
        except AuthExpired:
            return
        if not rejection.reauth:
            raise rejection

    def can_publish(self, scopes: frozenset[str]) -> bool:  # noqa: ARG002
        return True  # an app password has no narrower permissions

    def _wanted_scopes(self) -> Mapping[str, str]:
        return {}

    # --- the parts of a sign-in ---

    def _create_session(
        self, http: Http, handle: str, password: str, confirmed: str | None
    ) -> tuple[str, dict[str, Any]]:
        """Return the server that accepted the password, and its session.

        The configured service knows only its own accounts. The password goes to another server only if the owner has
        confirmed this server: a mistyped handle may lead to the server of a stranger.
        """
        service = self._section.service
        response = None
        if confirmed is None or servers.is_named(service, confirmed):
            response = self._send_password(http, service, handle, password)
            if response.status != 401 or read_error(response).code != "AuthenticationRequired":
                return service, _read_session(response)
        did = handle if servers.is_did(handle) else servers.find_did(http, self._section, handle)
        if did is None:
            raise SignInRefused(f"No account has the handle {handle}. Check the handle.", field=HANDLE)
        server = servers.find_server(http, self._section, did, None if handle == did else handle)
        if response is not None and (server is None or servers.is_of_service(server, service)):
            return service, _read_session(response)
        if server is None:
            raise SignInRefused(f"The account {handle} has no server. Check the handle.", field=HANDLE)
        servers.pick_address(self._section, server)  # the owner is not asked about a server that is not allowed
        if confirmed is None or not servers.is_named(server, confirmed):
            name, expected = servers.name_of(server), confirmed or servers.name_of(service)
            message = f"The account {handle} is on the server {name}, not on {expected}."
            raise OtherServer(f"{message} Its password was not sent to {name}.", server=name)
        session = _read_session(self._send_password(http, server, did, password))
        if text_at(session, "did") != did:
            raise SignInRefused(f"The server of {handle} returned the session of another account.", field=HANDLE)
        return server, session

    def _send_password(self, http: Http, server: str, identifier: str, password: str) -> HttpResponse:
        body = {"identifier": identifier, "password": password}
        return servers.ask(http, self._section, server, CREATE_SESSION, json=body)

    def _check_session(self, http: Http, server: str, session: Mapping[str, Any]) -> None:
        """Refuse a session of the main password and of an account that cannot publish, and end that session."""
        scope = _claims(text_at(session, "accessJwt") or "").get("scope")
        status = session.get("status") if session.get("active") is False else None
        if scope != MAIN_SCOPE and session.get("active") is not False:
            return
        with suppress(ProviderError):
            servers.ask(http, self._section, server, DELETE_SESSION, token=text_at(session, "refreshJwt"))
        if scope == MAIN_SCOPE:
            message = "This is the account's main password. socialpub accepts only an app password."
            raise SignInRefused(message, field=PASSWORD, remedy=CREATE_ONE)
        reason = INACTIVE.get(str(status), "The account is not active. Open the Bluesky app to see the reason.")
        raise SignInRefused(reason, field=HANDLE)

    def _home(self, session: Mapping[str, Any], answered: str) -> str:
        """Return the server that the session names, or else the server that answered."""
        document = object_at(session, "didDoc")
        named = servers.read_endpoint(document) if document.get("id") == session.get("did") else None
        return named or answered

    def _identify(self, http: Http, server: str, session: Mapping[str, Any]) -> Identity:
        did = _read_did(session)
        facts: dict[str, Any] = {SERVER: server, **_read_email(session)}
        name = picture = None
        with suppress(ProviderError):  # the account can publish without these
            facts |= servers.describe(http, self._section, server)
            name, picture = servers.read_profile(http, self._section, server, did)
        return Identity(did, _read_handle(session), name, picture, facts)

    def _identity_of_the_day(self, session: Mapping[str, Any], account: Account) -> Identity:
        """Return the handle of the day, and the server if the account has moved to a usable one."""
        server = self._home(session, account.server or self._section.service)
        moved = server != account.server and servers.is_usable(self._section, server)
        facts = _read_email(session) | ({SERVER: server} if moved else {})
        return Identity(account.id, _read_handle(session), None, None, facts)


def clean_handle(text: str) -> str:
    """Return the handle as the network writes it: without @, white space and invisible characters, in lower case."""
    seen = (
        character
        for character in text
        if not character.isspace() and unicodedata.category(character) not in ("Cf", "Cc")
    )
    cleaned = "".join(seen).lstrip("@")
    return cleaned if cleaned.startswith("did:") else cleaned.lower()


def _read_session(response: HttpResponse) -> dict[str, Any]:
    """Return a new session. Raises `SignInRefused` for what the owner can correct."""
    if response.ok:
        session = as_object(response.json())
        _read_did(session)
        _read_tokens(session)
        return session
    code = read_error(response).code
    if code == "AuthFactorTokenRequired":
        message = "The server asks for a second factor, so this is the account's main password."
        raise SignInRefused(message, field=PASSWORD, remedy=CREATE_ONE)
    if response.status == 401 and code in SUSPENDED:
        raise SignInRefused(INACTIVE["takendown"], field=HANDLE)
    if response.status == 401 and code is not None:
        raise SignInRefused(
            "Bluesky does not accept this handle with this app password.",
            field=PASSWORD,
            remedy=f"Check the handle, or create a new app password. {APP_PASSWORDS}",
        )
    raise classify(response)


def _ended(response: HttpResponse) -> Rejected:
    """Return why a session cannot be renewed. Raises as `classify` does."""
    try:
        rejection = classify(response)
    except AuthExpired as error:
        return Rejected(ENDED, status=response.status, reauth=True, code=error.code)
    if rejection.reauth:
        return rejection
    if rejection.code in SUSPENDED:
        return Rejected(INACTIVE["takendown"], status=response.status, reauth=True, code=rejection.code)
    raise NoAnswer(rejection.message, code=rejection.code)


def _read_did(session: Mapping[str, Any]) -> str:
    did = text_at(session, "did")
    if did is None or not servers.is_did(did):
        raise NoAnswer("The account's server did not say which account the session belongs to.")
    return did


def _read_email(session: Mapping[str, Any]) -> dict[str, bool | None]:
    confirmed = session.get("emailConfirmed")
    return {servers.EMAIL_CONFIRMED: confirmed if isinstance(confirmed, bool) else None}


def _read_handle(session: Mapping[str, Any]) -> str:
    handle = (text_at(session, "handle") or "").lower()
    return handle if servers.is_handle(handle) and handle != UNRESOLVED else _read_did(session)


def _read_tokens(session: Mapping[str, Any]) -> Tokens:
    access, refresh = text_at(session, "accessJwt"), text_at(session, "refreshJwt")
    if access is None or refresh is None:
        raise NoAnswer("The account's server returned a session without tokens.")
    return Tokens(access, refresh, _lifetime(access), _lifetime(refresh))


def _lifetime(token: str) -> int | None:
    claims = _claims(token)
    issued, ends = claims.get("iat"), claims.get("exp")
    return read_lifetime(ends - issued) if isinstance(issued, int | float) and isinstance(ends, int | float) else None


def _claims(token: str) -> dict[str, Any]:
    """Return what a token says, without trust. Empty: the token is not a JWT."""
    payload = token.split(".")[1] if token.count(".") == 2 else ""
    try:
        return as_object(parse_json(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))))
    except (ValueError, RecursionError):
        return {}
