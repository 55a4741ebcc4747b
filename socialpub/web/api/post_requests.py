"""What a caller sends to create or change a post: its shape, its files, the draft that it means, what the rows refuse.

A caller gets every error in one answer: a misspelled field does not hide that the artifact is unknown.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, TypeVar

from pydantic import ConfigDict, Field
from pydantic_core import PydanticCustomError

from socialpub.accounts.api_keys import Caller
from socialpub.core import units
from socialpub.core.errors import FieldCode, FieldError, InvalidRequest, PayloadTooLarge, cut
from socialpub.core.validation import AlsoCalled, Keys, Path
from socialpub.media.types import Facts, MediaRejected
from socialpub.providers import registry
from socialpub.providers.registry import PROVIDERS
from socialpub.publishing.media import uploads
from socialpub.publishing.media.uploads import Examined
from socialpub.publishing.posts import drafts
from socialpub.publishing.posts.drafts import MAX_MEDIA, Change, Draft, DraftMedia
from socialpub.runtime import Runtime
from socialpub.web.http import multipart
from socialpub.web.http.endpoint import PAYLOAD
from socialpub.web.http.multipart import FormPart, MultipartForm, PartHead
from socialpub.web.http.request import Request
from socialpub.web.http.shapes import (
    LEFT_OUT,
    Alt,
    FreeForm,
    Id,
    Ids,
    Instant,
    InstantOrNull,
    Shape,
    Trimmed,
    optional,
    read_id,
    read_instant,
    required,
)

T = TypeVar("T")

ALT = "Alternative text, strongly recommended for images"
CONTENT = "Text and time"
MEDIA = "Files in their order. Needed when there is no `post.body`"
OPTIONS = "Options by network, such as Pinterest's `boardId`"
PROFILES = "Where it goes: ids from `GET /profiles`, each once"


def _known_keys(provider: str) -> Keys:
    return Keys(tuple(option.name for option in registry.OPTIONS[provider]))


class ProviderOptions(Shape):
    """What goes beyond text and media, by network; only networks of the chosen profiles. A post's own keys win over
    those stored with the profile."""

    x: Annotated[FreeForm, _known_keys("x"), AlsoCalled(("twitter",))] = optional("Options for X")
    tiktok: Annotated[FreeForm, _known_keys("tiktok")] = optional("Options for TikTok")
    pinterest: Annotated[FreeForm, _known_keys("pinterest")] = optional("Options for Pinterest")

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """What was sent, by provider."""
        return {name: getattr(self, name) for name in PROVIDERS if name in self.model_fields_set}


class MediaReference(Shape):
    """A file of a post, by the artifact that was uploaded."""

    artifact_id: Id = required("A verified upload, as `POST /uploads/complete` names it")
    alt: Alt = optional(ALT)


_TEXT = AlsoCalled(("text", "content", "caption", "message"))
_TIME = AlsoCalled(("publishAt", "scheduleAt", "scheduledTime", "date", "time", "when"))


class PostContent(Shape):
    """Text and time."""

    body: Annotated[Trimmed, _TEXT] = optional("Text, without white space around it. Needed when there is no media")
    scheduled_at: Annotated[Instant, _TIME] = optional(
        "When to publish, in the future and with an offset. Left out, it is published now"
    )


class PostDraft(Shape):
    """A post to be made, of uploaded media. It has `post.body`, `media`, or both."""

    post: PostContent = required(CONTENT)
    profiles: Ids = required(PROFILES)
    media: list[MediaReference] = Field(LEFT_OUT, min_length=1, max_length=MAX_MEDIA, description=MEDIA)
    provider_options: ProviderOptions = optional(OPTIONS)

    @classmethod
    def across(cls, value: Any) -> Sequence[FieldError]:
        if isinstance(value, dict) and "media" not in value:
            post = value.get("post")
            if isinstance(post, dict) and "body" not in post:
                return [FieldError(("post", "body"), "is required when there is no media", FieldCode.TEXT_MISSING)]
        return ()

    def to_draft(self) -> Draft:
        return self.with_media([DraftMedia(item.artifact_id, item.alt) for item in self.media or ()])

    def with_media(self, media: Sequence[DraftMedia]) -> Draft:
        return Draft(
            body=self.post.body,
            scheduled_at=self.post.scheduled_at,
            profiles=tuple(self.profiles),
            media=tuple(media),
            options=_to_options(self.provider_options),
        )


class FormMediaItem(Shape):
    """A file of a post in a multipart form: a file part, or an artifact that exists already. Exactly one of `fileField`
    and `artifactId`."""

    file_field: Annotated[str, Field(min_length=1)] = optional("The name of the form's part that holds the file")
    artifact_id: Id = optional("A verified upload, in place of a part")
    alt: Alt = optional(ALT)


class FormDraft(PostDraft):
    """A post to be made, of files in the same form. It has `post.body`, `media`, or both."""

    media: list[FormMediaItem] = Field(  # type: ignore[assignment]  # items of another shape
        LEFT_OUT, min_length=1, max_length=MAX_MEDIA, description=MEDIA
    )

    @classmethod
    def across(cls, value: Any) -> Sequence[FieldError]:
        errors = list(super().across(value))
        media = value.get("media") if isinstance(value, dict) else None
        for index, item in enumerate(media[:MAX_MEDIA] if isinstance(media, list) else ()):
            if isinstance(item, dict) and ("fileField" in item) == ("artifactId" in item):
                errors.append(FieldError(("media", index), "needs exactly one of fileField and artifactId"))
        return errors

    def with_files(self, files: Mapping[str | None, Examined]) -> Draft:
        """`files` are the examined parts by field."""
        named = [(item, files.get(item.file_field)) for item in self.media or ()]
        return self.with_media(
            [DraftMedia(file.artifact_id if file else item.artifact_id, item.alt, file) for item, file in named]
        )


class ContentChange(Shape):
    """Text and time to change."""

    body: Annotated[Trimmed, _TEXT] = optional("The new text")
    scheduled_at: Annotated[InstantOrNull, _TIME] = optional(
        "The new time, in the future and with an offset; `null` publishes at once"
    )


class PostChange(Shape):
    """What to change about a scheduled post: at least one field. Sending a present value again is fine."""

    # In words alone the document could not say that {} is refused; that {"post": {}} is too, it says in words.
    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    post: ContentChange = optional(CONTENT)
    media: list[MediaReference] = Field(
        LEFT_OUT,
        max_length=MAX_MEDIA,
        description="The media instead of the present ones; may be empty if a body remains",
    )
    provider_options: ProviderOptions = optional("The options instead of all present ones of the post")

    @classmethod
    def across(cls, value: Any) -> Sequence[FieldError]:
        if isinstance(value, dict) and (value == {} or value == {"post": {}}):
            return [FieldError((), "has nothing to change; give at least one field")]
        return ()

    def to_change(self) -> Change:
        given = set() if self.post is None else set(self.post.model_fields_set)
        if self.media is not None:
            given.add("media")
        if self.provider_options is not None:
            given.add("options")
        return Change(
            given=frozenset(given),
            body=self.post.body if self.post else None,
            scheduled_at=self.post.scheduled_at if self.post else None,
            media=tuple(DraftMedia(item.artifact_id, item.alt) for item in self.media or ()),
            options=_to_options(self.provider_options),
        )


def _to_options(options: ProviderOptions | None) -> dict[str, dict[str, Any]] | None:
    return None if options is None else options.as_dict()


# --- bodies whose shape fails ----------------------------------------------------------------------------------------


def check_rows(rt: Runtime, caller: Caller, value: Any, errors: Sequence[FieldError]) -> list[FieldError]:
    """Return what the rows and the clock refuse about the well-formed fields of a draft or a change."""
    body = _object(value)
    profiles = _readable(body.get("profiles"), read_id)
    media = _readable(body.get("media"), lambda item: read_id(_object(item).get("artifactId")))
    all_readable = profiles is not None and len(profiles) == len(body["profiles"])
    options: dict[str, dict[str, Any]] | None = None
    if all_readable and profiles:
        options = {name: {} for name in PROVIDERS if name in _object(body.get("providerOptions"))}
    draft = Draft(
        body=None,  # neither the rows nor the clock restrict it
        scheduled_at=_instant(_object(body.get("post")).get("scheduledAt")),
        profiles=tuple((profiles or {}).values()),
        media=tuple(DraftMedia(artifact_id) for artifact_id in (media or {}).values()),
        options=options,
    )
    try:
        drafts.targets(rt, rt.reader, draft, caller, rt.now())
    except InvalidRequest as error:
        known = {item.path for item in errors}
        indexes = {"profiles": list(profiles or ()), "media": list(media or ())}
        return [item for item in (_reindexed(item, indexes) for item in error.errors) if item.path not in known]
    return []


def _reindexed(error: FieldError, indexes: dict[str, list[int]]) -> FieldError:
    """Restore the index of the request: unreadable items were left out."""
    path: Path = error.path
    if len(path) > 1 and path[0] in indexes and isinstance(path[1], int):
        path = (path[0], indexes[str(path[0])][path[1]], *path[2:])
    return replace(error, path=path)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _instant(value: Any) -> datetime | None:
    try:
        return read_instant(value)
    except PydanticCustomError:
        return None


def _readable(value: Any, read: Callable[[Any], T]) -> dict[int, T] | None:
    """Return the readable items of an array, by index."""
    if not isinstance(value, list):
        return None
    found: dict[int, T] = {}
    for index, item in enumerate(value[:100]):
        try:
            found[index] = read(item)
        except PydanticCustomError:
            continue
    return found


# --- the files of a form ----------------------------------------------------------------------------------------------


class PayloadForm(MultipartForm):
    """Every file has a name of its own, and the payload says what it is for."""

    def __init__(self) -> None:
        super().__init__()
        self.payload = b""
        """The JSON, not yet parsed."""
        self._has_payload = False

    def is_file(self, head: PartHead) -> bool:
        if head.name == PAYLOAD:
            if self._has_payload:
                raise InvalidRequest.at(PAYLOAD, message="appears twice; only one text field of this name is accepted")
            self._has_payload = True
            return False
        if head.file_name is None and not (head.declared_type and multipart.is_accepted_type(head.declared_type)):
            raise InvalidRequest.at(head.name, message=f"is not a file; the only text field of the form is {PAYLOAD}")
        return True

    def take_text(self, name: str, value: bytes) -> None:  # noqa: ARG002  there is but one
        self.payload = value

    def check_file(self, part: FormPart) -> None:
        if part.is_too_large:
            raise PayloadTooLarge(
                f"The file part {cut(part.field)!r} ({cut(part.declared_type)}) may have at most "
                f"{units.size(part.max_bytes)}."
            )

    def finish(self) -> None:
        if not self._has_payload:
            raise InvalidRequest.at(PAYLOAD, message="is missing: exactly one text field of this name holds the JSON")


async def read_form(rt: Runtime, request: Request) -> PayloadForm | None:
    """Receive the form of a request (`multipart.receive_form`)."""
    return await multipart.receive_form(rt, request, PayloadForm())


async def verify_files(
    rt: Runtime, form: MultipartForm, fields: Sequence[str | None], key_id: str
) -> dict[str | None, Examined]:
    """Match the parts with the media items, examine them, store them under their own names, and return them by field.

    `fields` contains the `fileField` of each media item, None for an item with an `artifactId`. `posts.create` makes
    them stay. Raises InvalidRequest with every error of the first stage that fails (names, types,
    contents), and Unavailable.
    """
    paths = _match(form, fields)
    refused = [part for part in form.parts if part.incoming is None]
    if refused:
        raise InvalidRequest.from_errors(
            [FieldError(paths[part.field], uploads.unaccepted(part.declared_type)) for part in refused]
        )
    results = await multipart.examine_files(rt, form.parts, key_id)
    errors = [
        FieldError(paths[part.field], result.reason)
        for part, result in zip(form.parts, results, strict=True)
        if isinstance(result, MediaRejected)
    ]
    if errors:
        raise InvalidRequest.from_errors(errors)
    files: dict[str | None, Examined] = {}
    for part, result in zip(form.parts, results, strict=True):
        assert isinstance(result, Facts)
        files[part.field] = await multipart.keep_file(rt, part, result)
    return files


def _match(form: MultipartForm, fields: Sequence[str | None]) -> dict[str, tuple[str | int, ...]]:
    """Return where the payload names each part. Raises InvalidRequest unless it names each exactly once."""
    paths: dict[str, tuple[str | int, ...]] = {}
    errors = []
    names = [part.field for part in form.parts]
    for index, name in enumerate(fields):
        if name is None:
            continue
        path = ("media", index, "fileField")
        if name in paths:
            errors.append(FieldError(path, f"names {cut(name)!r}, as an earlier media item does already"))
        elif names.count(name) == 0:
            errors.append(FieldError(path, f"names {cut(name)!r}, and the form has no such file part"))
        elif names.count(name) > 1:
            errors.append(
                FieldError(
                    path,
                    f"names {cut(name)!r}. The form has {names.count(name)} file parts of this name; names must differ",
                )
            )
        paths.setdefault(name, path)
    errors += [
        FieldError(("media",), f"has no item that names the file part {cut(name)!r}")
        for name in dict.fromkeys(names)
        if name not in paths
    ]
    if errors:
        raise InvalidRequest.from_errors(errors)
    return paths
