"""Multipart `POST /posts`: a post and its files in one request, all of it or nothing (spec 4.2, contract 5.8)."""

from collections.abc import Mapping, Sequence

from socialpub.accounts.api_keys import Caller
from socialpub.db.transaction import Tx
from socialpub.publishing import posts, uploads
from socialpub.publishing.drafts import Draft, DraftMedia
from socialpub.publishing.uploads import Examined
from socialpub.runtime import Runtime
from socialpub.web.answer import Answer
from socialpub.web.api import multipart_files
from socialpub.web.api.create_post import accept, be_strict
from socialpub.web.api.mapping import options_of
from socialpub.web.api.multipart import PayloadForm, read_form
from socialpub.web.api.requests import FormDraft
from socialpub.web.endpoint import FormBody
from socialpub.web.request import Request


async def create(rt: Runtime, caller: Caller, request: Request, form: PayloadForm) -> Answer:
    """Accept a post together with its files."""
    body: FormDraft = request.body
    fields = [item.file_field for item in body.media or ()]
    files = await multipart_files.verify(rt, form, fields, caller.key_id)
    draft = _draft_of(body, files)
    await be_strict(rt, request, draft, caller)
    return await accept(rt, request, _create, list(files.values()), draft, caller)


MULTIPART_POST = FormBody(read=read_form, shape=FormDraft, handler=create)


def _create(rt: Runtime, tx: Tx, files: Sequence[Examined], draft: Draft, caller: Caller) -> str:
    uploads.adopt(rt, tx, files)
    return posts.create(rt, tx, draft, caller)


def _draft_of(body: FormDraft, files: Mapping[str, Examined]) -> Draft:
    arriving = [(item, files[item.file_field] if item.file_field else None) for item in body.media or ()]
    media = tuple(DraftMedia(file.artifact_id if file else item.artifact_id, item.alt, file) for item, file in arriving)
    return Draft(
        body=body.post.body,
        scheduled_at=body.post.scheduled_at,
        profiles=tuple(body.profiles),
        media=media,
        options=options_of(body.provider_options),
    )
