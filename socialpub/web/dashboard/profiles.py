"""`/profiles` and below: the connected accounts, their default options, connecting and disconnecting."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from starlette.responses import Response

from socialpub.accounts import avatars, boards, connect, consents, profiles, queries, redirects, tokens, upkeep
from socialpub.accounts.connect import Connected
from socialpub.accounts.remedies import Surface
from socialpub.core.errors import InvalidRequest, NotFound, OperatorError, Unavailable
from socialpub.db.models import ConsentRow, ProfileRow
from socialpub.db.queries.profile_queue import count_queued_by_profile
from socialpub.db.states import ProfileStatus
from socialpub.db.tables import access_rows, profile_rows
from socialpub.providers.auth import SignIn, SignInField
from socialpub.providers.pinterest import Pinterest
from socialpub.publishing import profile_queue
from socialpub.runtime import Runtime
from socialpub.web.dashboard import labels
from socialpub.web.dashboard.browser import forms
from socialpub.web.dashboard.browser.visit import Visit, page
from socialpub.web.dashboard.compose import form_page, option_fields


@page()
async def index(rt: Runtime, visit: Visit) -> Response:
    rows = profile_rows.list_all(rt.db)
    connected = [row for row in rows if row.status != ProfileStatus.DISCONNECTED]
    return visit.show(
        "profiles.html",
        connected=connected,
        disconnected=[row for row in rows if row.status == ProfileStatus.DISCONNECTED],
        warnings={row.id: upkeep.describe_warning(row, rt.now(), Surface.DASHBOARD) for row in connected},
        names=labels.profile_names(connected),
        waiting=dict(count_queued_by_profile(rt.db)),
        avatars=avatars.list_versions(rt),
        attempts=access_rows.waiting_consents(rt.db, Surface.DASHBOARD, rt.stamp()),
        missing_apps={name: redirects.find_missing_app(rt, name) for name in rt.providers},
        fields={
            provider.label: provider.auth.fields
            for provider in rt.providers.values()
            if isinstance(provider.auth, SignIn)
        },
    )


@page()
async def avatar(rt: Runtime, visit: Visit) -> Response:
    image = avatars.load(rt, visit.params["profileId"])
    if image is None:
        raise NotFound("This profile has no avatar.")
    return visit.show_image(image)


@page()
async def rename(rt: Runtime, visit: Visit) -> Response:
    profile_id, name = visit.params["profileId"], visit.form.text("name")
    try:
        await rt.write_soon(profiles.rename, profile_id, name)
    except InvalidRequest as error:
        return await _page(rt, visit, name=name, errors=forms.field_errors(error))
    return visit.go(f"/profiles/{profile_id}", status=f"The profile is now called “{name.strip()}”.")


@page()
async def set_options(rt: Runtime, visit: Visit) -> Response:
    profile = profiles.get(rt.db, visit.params["profileId"])
    options = option_fields.read_options(visit.form, profile.provider)
    try:
        profiles.check_options(rt, profile, options)  # before the write, so that hints refer to the dashboard
        await rt.write_soon(profiles.replace_options, profile.id, options)
    except InvalidRequest as error:
        wrong = option_fields.errors_of(profile.provider, error.errors)
        problem = "The options are not saved. See the fields below." if wrong else error.detail
        return await _page(rt, visit, options=options, wrong=wrong, problem=problem)
    status = "The default options are saved. They apply to new posts."
    return visit.go(f"/profiles/{profile.id}", status=status)


@page()
async def create_board(rt: Runtime, visit: Visit) -> Response:
    profile_id, name, secret = visit.params["profileId"], visit.form.text("board"), visit.form.ticked("secret")

    def create() -> tuple[str, bool]:
        board, is_new = boards.create_board(rt, profile_id, name, secret=secret, surface=Surface.DASHBOARD)
        return f"The board “{board.name}”", is_new

    return await _create(rt, visit, create)


@page()
async def create_section(rt: Runtime, visit: Visit) -> Response:
    profile_id, name, board_id = visit.params["profileId"], visit.form.text("section"), visit.form.text("of")

    def create() -> tuple[str, bool]:
        with queries.explain_failures(rt, profiles.get(rt.db, profile_id), boards.UNKNOWN, Surface.DASHBOARD):
            listed = queries.load(rt, boards.of_profile(rt, profile_id))
        board = next((item for item in listed if item.id == board_id), None)
        if board is None:
            raise InvalidRequest.at("of", message="is not one of this account's boards")
        section, is_new = boards.create_section(rt, profile_id, board, name, Surface.DASHBOARD)
        return f"The section “{section.name}”", is_new

    return await _create(rt, visit, create)


async def _create(rt: Runtime, visit: Visit, create: Callable[[], tuple[str, bool]]) -> Response:
    try:
        subject, is_new = await asyncio.to_thread(create)
    except InvalidRequest as error:
        return await _page(rt, visit, errors=forms.field_errors(error))
    status = f"{subject} {'is created' if is_new else 'already exists'}."
    return visit.go(f"/profiles/{visit.params['profileId']}", status=status)


async def _page(
    rt: Runtime,
    visit: Visit,
    *,
    name: str | None = None,
    errors: dict[str, str] | None = None,
    options: dict[str, Any] | None = None,
    wrong: dict[str, str] | None = None,
    problem: str | None = None,
) -> Response:
    """Render the page, with the values of an invalid form."""
    row = profiles.get(rt.db, visit.params["profileId"])
    provider = rt.providers[row.provider]
    values = row.options if options is None else options
    # A refresh replaces only the waiting posts, so it does not ask the network.
    asks = row.status == ProfileStatus.ACTIVE and not visit.is_fragment
    loaded = await form_page.ask_choices(visit, row, values) if asks else None
    limits = provider.app_limits()
    defaults = option_fields.UNAUDITED if limits else {}
    fields = option_fields.build_fields(row.provider, values, errors=wrong, known=loaded, defaults=defaults)
    return visit.show(
        "profile.html",
        http_status=400 if errors or problem else 200,
        profile=row,
        label=provider.label,
        avatar_version=avatars.list_versions(rt).get(row.id),
        warning=upkeep.describe_warning(row, rt.now(), Surface.DASHBOARD),
        missing=provider.auth.missing_scopes(row.scopes),
        queue=profile_queue.summarize(rt, row.id),
        account_facts=provider.account_facts(row.facts),
        app_limits=limits,
        name=row.name if name is None else name,
        errors=errors or {},
        problem=problem,
        options=[field for field in fields.values() if field.is_given or not field.of_one_post],
        known=loaded,
        has_boards=row.provider == Pinterest.name,
        permalink=f"/profiles/{row.id}",
    )


show = page()(_page)


@page()
async def refresh(rt: Runtime, visit: Visit) -> Response:
    """Renew the tokens and fetch the account data again."""
    profile = profiles.get(rt.db, visit.params["profileId"])
    renewable = profile.refresh_token is not None

    def renew() -> list[str]:
        if renewable:
            with queries.explain_failures(rt, profile, "The tokens cannot be renewed.", Surface.DASHBOARD):
                tokens.renew(rt, profile.id)
        with queries.explain_failures(rt, profile, "The account data could not be fetched.", Surface.DASHBOARD):
            return upkeep.fetch_account_data(rt, profile.id)

    changes = await asyncio.to_thread(renew)
    done = "has a new access token" if renewable else "has its account data fetched again"
    return visit.go(f"/profiles/{profile.id}", status=" ".join([f"“{profile.name}” {done}.", *changes]))


@page()
async def confirm_disconnect(rt: Runtime, visit: Visit) -> Response:
    row = profiles.get(rt.db, visit.params["profileId"])
    if row.status == ProfileStatus.DISCONNECTED:
        return visit.go(f"/profiles/{row.id}")
    return visit.show(
        "disconnect.html",
        profile=row,
        label=rt.providers[row.provider].label,
        queue=profile_queue.summarize(rt, row.id),
    )


@page()
async def disconnect(rt: Runtime, visit: Visit) -> Response:
    profile = profiles.get(rt.db, visit.params["profileId"])
    await rt.write_soon(profiles.disconnect, profile.id)
    status = f"“{profile.name}” is disconnected. Its tokens are no longer used."
    return visit.go(f"/profiles/{profile.id}", status=status)


@page()
async def connect_new(rt: Runtime, visit: Visit) -> Response:
    provider_name = visit.params["provider"]
    if provider_name not in rt.providers:
        raise NotFound("There is no network with this name.")
    return await _connect(visit, provider_name)


@page()
async def connect_again(rt: Runtime, visit: Visit) -> Response:
    profile = profiles.get(rt.db, visit.params["profileId"])
    return await _connect(visit, profile.provider, profile)


async def _connect(visit: Visit, provider_name: str, profile: ProfileRow | None = None) -> Response:
    """Begin to connect an account, or the account of `profile` again."""
    auth, profile_id = visit.rt.providers[provider_name].auth, profile.id if profile else None
    if isinstance(auth, SignIn):
        connect.check_sign_in(visit.rt, visit.rt.providers[provider_name], profile_id, Surface.DASHBOARD)
        return await _sign_in(visit, provider_name, auth.fields, profile)
    begin = partial(consents.begin, profile_id=profile_id, surface=Surface.DASHBOARD)
    begun, url = await asyncio.to_thread(begin, visit.rt, provider_name)
    return _show_consent(visit, provider_name, begun.id, begun.redirect_uri, consent_url=url)


async def _sign_in(
    visit: Visit, provider_name: str, fields: Sequence[SignInField], profile: ProfileRow | None
) -> Response:
    """Sign in with the values of the form, or show the form. Secret values are never shown again.

    An account of another server has a second step: the page names the server and asks for the secret values again.
    """
    rt, problem, server, question = visit.rt, None, None, None
    errors: dict[str, str] = {}
    username = profile.username if profile else None
    prefilled = {field.name: username or "" for field in fields[:1] if not field.secret}
    if any(visit.form.texts(field.name) for field in fields):
        values = {field.name: visit.form.text(field.name) for field in fields}
        sign_in = partial(
            connect.sign_in,
            profile_id=profile.id if profile else None,
            surface=Surface.DASHBOARD,
            server=visit.form.text("server") or None,
        )
        try:
            finished = await asyncio.to_thread(sign_in, rt, provider_name, values)
        except connect.WrongValue as error:
            errors[error.field] = error.sentence
            server = visit.form.text("server")
        except connect.UnconfirmedServer as error:
            server, question = error.server, error.message
        except OperatorError as error:
            problem = error.sentence
        except Unavailable as error:
            problem = error.detail
        else:
            return _connected(rt, visit, finished)
        prefilled = {field.name: values[field.name] for field in fields if not field.secret}
    return visit.show(
        "connect_profile.html",
        http_status=400 if errors or problem else 200,
        problem=problem,
        provider=provider_name,
        label=rt.providers[provider_name].label,
        profile=profile,
        fields=fields,
        shown=prefilled,
        errors=errors,
        server=server,
        question=question,
        path=visit.path,
    )


@page()
async def waiting(rt: Runtime, visit: Visit) -> Response:
    """Show a connection attempt that waits for consent, with a field for the redirected address."""
    row = _attempt(rt, visit)
    outcome = consents.load_outcome(rt, row.id)
    if outcome is None:
        return _show_consent(visit, row.provider, row.id, row.redirect_uri)
    if visit.is_fragment:
        return visit.reload(visit.path)
    if isinstance(outcome, OperatorError):
        return visit.go("/profiles", alert=outcome.sentence)
    return _connected(rt, visit, outcome)


@page()
async def paste(rt: Runtime, visit: Visit) -> Response:
    """Finish the attempt with the redirected address."""
    row = _attempt(rt, visit)
    try:
        query = redirects.read_pasted_address(visit.form.text("address"), row.redirect_uri)
        finished = await asyncio.to_thread(consents.finish, rt, row.provider, query, row.id)
    except OperatorError as error:
        if consents.load_outcome(rt, row.id) is not None:
            return visit.go("/profiles", alert=error.sentence)
        return _show_consent(visit, row.provider, row.id, row.redirect_uri, problem=error.sentence)
    return _connected(rt, visit, finished)


def _attempt(rt: Runtime, visit: Visit) -> ConsentRow:
    row = rt.db.get(ConsentRow, visit.params["consentId"])
    if row is None or Surface(row.door) is not Surface.DASHBOARD:
        raise NotFound("This attempt to connect no longer exists. Start again under Profiles.")
    return row


def _connected(rt: Runtime, visit: Visit, finished: Connected) -> Response:
    profile = profiles.get(rt.db, finished.profile_id)
    label = rt.providers[profile.provider].label
    return visit.go(f"/profiles/{profile.id}", status=finished.sentence(profile, label))


def _show_consent(
    visit: Visit,
    provider_name: str,
    attempt_id: str,
    redirect_uri: str,
    *,
    consent_url: str | None = None,
    problem: str | None = None,
) -> Response:
    """Show the page that waits for the consent.

    This page continues without a click if the network redirects to this host. It is not an HTTP redirect: browsers
    apply `form-action` to each redirect of a form, and a consent page can redirect to any host.
    """
    rt = visit.rt
    provider = rt.providers[provider_name]
    rule = redirects.check(rt.settings, provider)
    accepted = rule is None or rule.remedy is None
    return visit.show(
        "to_consent.html",
        http_status=400 if problem else 200,
        problem=problem,
        label=provider.label,
        rule=rule,
        attempt=attempt_id,
        redirect_uri=redirect_uri,
        consent_url=consent_url,
        goes_on=bool(consent_url) and accepted and redirects.returns_here(rt.settings, provider_name),
    )
