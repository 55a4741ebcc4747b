"""Multipart `POST /posts`: a post and its files in one request (spec 4.2, contract 5.8)."""

from collections.abc import Mapping, Sequence

from socialpub.accounts.api_keys import Caller
from socialpub.core.errors import FieldError, InvalidRequest
from socialpub.db.database import Tx
from socialpub.publishing import idempotency, posts, uploads
from socialpub.publishing.posts import Draft, DraftMedia
from socialpub.publishing.uploads import Examined
from socialpub.runtime import Runtime
from socialpub.web import json_body as bodies
from socialpub.web.api.create_post import accept, replay
from socialpub.web.api.mapping import also_wrong, options_of
from socialpub.web.api.multipart import Form, read_form, verify_parts
from socialpub.web.api.requests import FormDraft
from socialpub.web.idempotent import once
from socialpub.web.request import Answer, Request
from socialpub.web.shapes import REFUSED


async def create(rt: Runtime, caller: Caller, request: Request) -> Answer | None:
    """Accept a post together with its files: all of it, or nothing."""
    form = await read_form(rt, request)
    if form is None:
        return None
    with form:
        known: Sequence[FieldError] = ()
        try:
            payload = bodies.parse(form.payload)
        except bodies.NotUnicode as error:
            payload, known = error.value, error.errors

        def check() -> None:
            errors = list(known)
            try:
                request.body = FormDraft.read(payload)
            except InvalidRequest as error:
                told = {one.path for one in known}
                errors += [one for one in error.errors if one.path not in told]
            more = also_wrong(rt, caller, payload, errors)
            if errors or more:
                raise InvalidRequest(REFUSED, [*errors, *more])

        if known:
            check()
        return await once(
            rt,
            request,
            fingerprint=lambda: idempotency.fingerprint(request.path, payload, form.fingerprints),
            check=check,
            work=lambda: _accept(rt, caller, request, form),
            show=replay,
        )


async def _accept(rt: Runtime, caller: Caller, request: Request, form: Form) -> Answer:
    body: FormDraft = request.body
    files = await verify_parts(rt, form, [item.file_field for item in body.media or ()])
    return await accept(rt, request, _create, list(files.values()), _draft(body, files), caller)


def _create(rt: Runtime, tx: Tx, files: Sequence[Examined], draft: Draft, caller: Caller) -> str:
    uploads.adopt(rt, tx, files)
    return posts.create(rt, tx, draft, caller)


def _draft(body: FormDraft, files: Mapping[str, Examined]) -> Draft:
    media = tuple(
        DraftMedia(files[item.file_field].artifact_id if item.file_field else item.artifact_id, item.alt)
        for item in body.media or ()
    )
    return Draft(
        body=body.post.body,
        scheduled_at=body.post.scheduled_at,
        profiles=tuple(body.profiles),
        media=media,
        options=options_of(body.provider_options),
    )
