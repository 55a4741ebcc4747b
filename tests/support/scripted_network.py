"""A network whose every answer is written down beforehand: for the engine's own stories, without any adapter."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from socialpub.core.errors import FieldError
from socialpub.providers.auth import Account, Identity, SignIn, SignInField, SignInRefused, Tokens
from socialpub.providers.base import CannotTell, Content, Done, Job, Kind, Outcome, Published, Readback, Step
from socialpub.providers.oauth import OAuth, RedirectRow, RedirectRules
from socialpub.providers.preview import Preview, TextPart
from socialpub.providers.responses import ProviderError

ScriptedResult = Outcome | Readback | CannotTell | ProviderError | BaseException | Callable[[Job], object]
"""An exception is raised, a function is called with the job, everything else is returned."""


class ScriptedOAuth(OAuth):
    refresh_early_seconds = 300
    idle_refresh_seconds = 30 * 86400
    revokes_every_grant = False
    redirect_rules = RedirectRules((RedirectRow("https or http", ("https", "http"), "this file", "2026-11"),))

    def __init__(self) -> None:
        self.refreshes: list[str] = []
        self.answers: list[Tokens | Exception] = []

    def authorize_url(self, redirect_uri: str, state: str, verifier: str) -> str:
        return f"https://x.example/consent?redirect_uri={redirect_uri}&state={state}"

    def exchange(self, http: object, code: str, redirect_uri: str, verifier: str) -> Tokens:
        return self.refresh(http, None, code)

    def identify(self, http: object, account: Account, access_token: str) -> Identity:
        return Identity("acct", "demo", "Demo", None)

    def refresh(self, http: object, account: Account | None, refresh_token: str) -> Tokens:
        self.refreshes.append(refresh_token)
        answer = self.answers.pop(0) if self.answers else Tokens(f"access-{len(self.refreshes)}", "refresh-next", 7200)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def revoke(self, http: object, account: Account, access_token: str, refresh_token: str | None) -> None:
        pass

    def missing_scopes(self, scopes: frozenset[str]) -> list[str]:
        return []

    def can_publish(self, scopes: frozenset[str]) -> bool:
        return True

    def _wanted_scopes(self) -> Mapping[str, str]:
        return {}

    def _exchange_fields(self, verifier: str) -> Mapping[str, str]:
        raise NotImplementedError

    def _request_tokens(self, http: object, fields: Mapping[str, str]) -> Tokens:
        raise NotImplementedError


APP_PASSWORD = "abcd-efgh-ijkl-mnop"
MAIN_PASSWORD = "correct horse battery staple"


class ScriptedSignIn(SignIn):
    """Two fields, and the accounts `demo.test` and `studio.test`. `answers` come before the usual ones."""

    refresh_early_seconds = 600
    idle_refresh_seconds = 30 * 86400
    fields = (
        SignInField("handle", "Handle", hint="The handle of the account."),
        SignInField("password", "App password", secret=True, hint="Not the main password."),
    )

    def __init__(self) -> None:
        self.given: list[dict[str, str]] = []
        self.answers: list[tuple[Identity, Tokens] | Exception] = []
        self.refresh_answers: list[Tokens | Exception] = []
        self.revoked: list[str] = []

    def sign_in(self, http: object, values: Mapping[str, str], server: str | None = None) -> tuple[Identity, Tokens]:
        self.given.append({**values, **({"server": server} if server else {})})
        if self.answers:
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer
        handle, password = values["handle"], values["password"]
        if handle not in ("demo.test", "studio.test"):
            raise SignInRefused(f"There is no account {handle}.", status=400, field="handle")
        if password == MAIN_PASSWORD:
            raise SignInRefused(
                "This is the main password.", field="password", remedy="Create an app password in the app."
            )
        if password != APP_PASSWORD:
            raise SignInRefused(f"The network says: “{password}” is wrong.", status=401, field="password")
        number = len(self.given)
        identity = Identity(f"did:plc:{handle}", handle, handle.title(), None, {"server": "https://pds.test"})
        return identity, Tokens(f"access-token-{number}", f"refresh-token-{number}", 7200, 90 * 86400)

    def refresh(self, http: object, account: Account, refresh_token: str) -> Tokens:
        answer = self.refresh_answers.pop(0) if self.refresh_answers else Tokens("access-token-r", "refresh-token-r")
        if isinstance(answer, Exception):
            raise answer
        return answer

    def identify(self, http: object, account: Account, access_token: str) -> Identity:
        return Identity(account.id, account.username, None, None)

    def revoke(self, http: object, account: Account, access_token: str, refresh_token: str | None) -> None:
        self.revoked.append(access_token)

    def can_publish(self, scopes: frozenset[str]) -> bool:
        return True

    def _wanted_scopes(self) -> Mapping[str, str]:
        return {}


class ScriptedNetwork:
    """`results[step]` holds what comes next; when nothing is left, the step goes well."""

    name, label = "x", "X"
    option_table = ()

    def __init__(self, *steps: tuple[str, Kind]) -> None:
        self.auth = ScriptedOAuth()
        self.steps = [Step(name, kind) for name, kind in steps or (("create_post", Kind.COMMIT),)]
        self.results: dict[str, list[ScriptedResult]] = {}
        self.asked: list[str] = []
        self.jobs: list[Job] = []
        self.effects: list[str] = []
        self.problems: list[FieldError] = []

    def account_url(self, account: Account | None) -> str:
        return f"https://x.com/{account.username if account else ''}"

    def read_options(self, given: Mapping[str, Any]) -> tuple[dict[str, Any], list[FieldError]]:
        return dict(given), []

    def merge_options(self, stored: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
        return {**stored, **own}

    def check(self, content: Content, options: Mapping[str, Any], account: Account) -> list[FieldError]:
        return self.problems

    def notes(self, content: Content, options: Mapping[str, Any], account: Account | None = None) -> list[str]:
        return []

    def account_facts(self, facts: Mapping[str, Any]) -> list[tuple[str, str]]:
        return [(str(key), str(value)) for key, value in facts.items()]

    def account_notes(self, account: Account) -> list[str]:
        return []

    def app_limits(self, chosen: Mapping[str, Any] | None = None) -> None:
        return None

    def preview(self, content: Content, options: Mapping[str, Any], account: Account) -> Preview:
        return Preview(text=(TextPart(content.text),), media=tuple(item.position for item in content.media))

    def card_link(self, content: Content, options: Mapping[str, Any]) -> None:
        return None

    def plan(self, content: Content, options: Mapping[str, Any]) -> Sequence[Step]:
        return self.steps

    def run(self, step: str, job: Job) -> Outcome:
        self.asked.append(step)
        self.jobs.append(job)
        result = self._next(step)
        if result is None:
            return self.goes_well(step, job)
        return self._come_to(result, job)  # type: ignore[return-value]

    def recover(self, job: Job) -> Readback | CannotTell:
        self.asked.append("recover")
        result = self._next("recover")
        return Readback() if result is None else self._come_to(result, job)  # type: ignore[return-value]

    def goes_well(self, step: str, job: Job) -> Outcome:
        kind = next(known.kind for known in self.steps if known.name == step)
        return self.publish(job.content.text) if kind.commits else Done({**job.memo, step: True})

    def publish(self, text: str) -> Published:
        """A post appears on the account."""
        self.effects.append(text)
        number = str(len(self.effects))
        return Published(number, f"https://x.example/{number}")

    def _come_to(self, result: ScriptedResult, job: Job) -> object:
        if isinstance(result, BaseException):
            raise result
        return result(job) if callable(result) else result

    def _next(self, step: str) -> ScriptedResult | None:
        waiting = self.results.get(step)
        return waiting.pop(0) if waiting else None


class ScriptedSignInNetwork(ScriptedNetwork):
    """A simulated Bluesky: a network that signs in with fields."""

    name, label = "bluesky", "Bluesky"
    option_table: Mapping[str, Any] = {}

    def __init__(self, *steps: tuple[str, Kind]) -> None:
        super().__init__(*steps)
        self.auth = ScriptedSignIn()  # type: ignore[assignment]
