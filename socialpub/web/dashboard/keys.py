"""`/keys`: the API keys. A key is shown once, in the response to the form that creates the key.

The form contains the id of the new key, so a form that is submitted twice creates one key.
"""

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from starlette.responses import Response

from socialpub.accounts import api_keys, key_limits
from socialpub.accounts.api_keys import KeyRefused
from socialpub.core.errors import Conflict, InvalidRequest, SocialpubError
from socialpub.db.models import ApiKeyRow
from socialpub.db.states import ProfileStatus
from socialpub.db.tables import counters, profile_rows
from socialpub.providers.registry import LABELS
from socialpub.runtime import Runtime
from socialpub.web.dashboard import labels
from socialpub.web.dashboard.browser import times
from socialpub.web.dashboard.browser.forms import Form, field_errors
from socialpub.web.dashboard.browser.visit import Visit, page

MADE_ALREADY = (
    "This form already created a key. A key is shown only once. If you did not copy the key, revoke it below and "
    "create another key."
)
_FIELDS = {"expires_at": "expires", "providers": "networks", "scope": "write"}
"""Fields of the form, by the parameter of `api_keys.create`."""


@dataclass(frozen=True, slots=True)
class ShownKey:
    key: ApiKeyRow
    state: str
    networks: tuple[str, ...]
    profiles: tuple[str, ...]
    requests_today: int

    @property
    def limits(self) -> list[str]:
        return key_limits.list_names(self.key.posts_per_day, approval=self.key.approval)

    @property
    def limits_text(self) -> str:
        return key_limits.describe(self.key.posts_per_day, approval=self.key.approval)


@page()
async def index(rt: Runtime, visit: Visit) -> Response:
    with contextlib.suppress(SocialpubError):  # then the times of last use are a minute old
        await visit.request.app.state.last_uses.flush()
    return _page(rt, visit, Form([("write", "on")]), api_keys.new_id())


@page()
async def create(rt: Runtime, visit: Visit) -> Response:
    form = visit.form
    key_id = form.text("key_id")
    try:
        if not api_keys.is_id(key_id):
            raise InvalidRequest.at(message="This form is incomplete. Reload the page and try again.")
        key = await rt.write_soon(
            api_keys.create,
            form.text("name"),
            "write" if form.ticked("write") else "read",
            form.texts("networks"),
            form.texts("profiles"),
            _expiry(visit),
            key_id,
            _posts_per_day(form),
            form.ticked("approval"),
        )
    except KeyRefused as error:
        return _page(rt, visit, form, key_id, {_FIELDS.get(error.field, error.field): error.sentence})
    except InvalidRequest as error:
        return _page(rt, visit, form, key_id, field_errors(error) or {"form": error.detail})
    except Conflict:
        return _page(rt, visit, Form([("write", "on")]), api_keys.new_id(), {"form": MADE_ALREADY}, http_status=409)
    (described,) = _describe(rt, [api_keys.get(rt.db, key_id)])
    return visit.show("key_created.html", whole_key=key, one=described, base_address=_base_address(rt, visit))


@page()
async def revoke_form(rt: Runtime, visit: Visit) -> Response:
    (key,) = _describe(rt, [api_keys.get(rt.db, visit.params["keyId"])])
    return visit.show("key_revoke.html", one=key)


@page()
async def revoke(rt: Runtime, visit: Visit) -> Response:
    key = api_keys.get(rt.db, visit.params["keyId"])
    await rt.write_soon(api_keys.revoke, key.id)
    return visit.go("/keys", status=f"The key “{key.name}” is revoked. Requests with this key are refused.")


@page()
async def keep_restored(rt: Runtime, visit: Visit) -> Response:
    """Keep the API keys of a restored backup. The overview then no longer reports them."""
    count = await rt.write_soon(api_keys.keep_restored)
    if not count:
        return visit.go("/", status="No restored key needs a decision.")
    return visit.go("/", status="The key is kept." if len(count) == 1 else f"{len(count)} keys are kept.")


def _page(
    rt: Runtime, visit: Visit, form: Form, key_id: str, errors: dict[str, str] | None = None, http_status: int = 400
) -> Response:
    keys = _describe(rt, reversed(api_keys.list_all(rt.db)))
    rows = [row for row in profile_rows.list_all(rt.db) if row.status != ProfileStatus.DISCONNECTED]
    return visit.show(
        "keys.html",
        http_status=http_status if errors else 200,
        keys=[described for described in keys if described.state == "active"],
        ended=[described for described in keys if described.state != "active"],
        restored={key.id for key in api_keys.list_undecided(rt.db, rt.stamp())},
        profiles=rows,
        names=labels.profile_names(rows, network_is_shown=True),
        form=form,
        key_id=key_id,
        covered=_covered_networks(rt),
        every_network=api_keys.ALL,
        errors=errors or {},
        problem=" ".join(errors.values()) if errors else None,
    )


def _describe(rt: Runtime, keys: Iterable[ApiKeyRow]) -> list[ShownKey]:
    names = labels.profile_names(profile_rows.list_all(rt.db))
    covered = _covered_networks(rt)
    requests_today = counters.usage_by_day(rt.db, rt.now())[0].requests
    return [
        ShownKey(
            key,
            key.state(rt.stamp()),
            _list_networks(key, covered),
            tuple(names.get(profile_id, profile_id) for profile_id in key.profiles or ()),
            requests_today.get(key.id, 0),
        )
        for key in keys
    ]


def _covered_networks(rt: Runtime) -> tuple[str, ...]:
    """Return the labels of the networks of a key that names none, or nothing if these are all networks."""
    extensions = api_keys.list_extensions(rt)
    return (
        tuple(provider.label for name, provider in rt.providers.items() if name not in extensions) if extensions else ()
    )


def _list_networks(key: ApiKeyRow, covered: tuple[str, ...]) -> tuple[str, ...]:
    """Return the labels of the networks that limit the key."""
    if not key.providers:
        return () if key.profiles else covered
    return () if api_keys.ALL in key.providers else tuple(LABELS.get(name, name) for name in key.providers)


def _posts_per_day(form: Form) -> int | None:
    """Return the daily limit. Raises KeyRefused."""
    if not form.text("posts_per_day").strip():
        return None
    number = form.number("posts_per_day")
    if number is None:
        raise KeyRefused(
            "posts_per_day", "“Posts a day” must be a whole number.", "Enter a number such as 10, or leave it empty."
        )
    return number


def _expiry(visit: Visit) -> datetime | None:
    """Return the expiry: after a number of days, or at the end of a local day. Raises KeyRefused."""
    days, date = visit.form.number("expires", max_digits=4), visit.form.text("expires_on")
    if days is not None:
        return visit.now + timedelta(days=days)
    if visit.form.text("expires") != "date" and not date:
        return None
    end = times.read_day(date, visit.zone, end=True)
    if end is None:
        raise KeyRefused("expires_on", "“Last day” must be a date.", "Enter a date such as 2027-01-31.")
    return end


def _base_address(rt: Runtime, visit: Visit) -> str:
    """Return the base URL that this browser uses. The Origin header is already checked."""
    origin = visit.request.headers.get("origin", "")
    base = urlsplit(rt.settings.base_url)
    if not origin or origin == f"{base.scheme}://{base.netloc}":
        return rt.settings.base_url.rstrip("/")
    return origin
