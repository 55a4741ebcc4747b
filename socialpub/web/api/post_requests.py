"""The bodies that create or change a post: their shapes, their files, and their conversion to drafts.

One response reports every error: a misspelled field does not hide an unknown artifact.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import AfterValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from socialpub.accounts import api_keys
from socialpub.accounts.api_keys import Caller
from socialpub.core import units
from socialpub.core.errors import FieldCode, FieldError, InvalidRequest, PayloadTooLarge, cut
from socialpub.core.validation import AlsoCalled, Keys, Path, inner_errors
from socialpub.media.types import Facts, MediaRejected
from socialpub.providers import registry
from socialpub.providers.options import find_post_option
from socialpub.providers.registry import LABELS, SPECIFIED
from socialpub.publishing.media import arrivals, uploads
from socialpub.publishing.posts import drafts
from socialpub.publishing.posts.drafts import MAX_MEDIA, Draft, DraftMedia
from socialpub.runtime import Runtime
from socialpub.web.api.requests import MediaUrl, check_media_url
from socialpub.web.http import multipart
from socialpub.web.http.endpoint import PAYLOAD
from socialpub.web.http.multipart import FormPart, MultipartForm, PartHead
from socialpub.web.http.shapes import (
    OMITTED,
    Alt,
    FreeForm,
    Id,
    Ids,
    Instant,
    InstantOrNull,
    Shape,
    Trimmed,
    optional,
    read_free_form,
    read_id,
    read_instant,
    required,
)

T = TypeVar("T")

ALT = "The alternative text, strongly recommended for images"
CONTENT = "The text and the time of the post"
MEDIA = "The media files in their order. Required if there is no `post.body`"
OPTIONS = "Options by network, such as Pinterest's `boardId`"
PROFILES = "The target profiles: different ids from `GET /profiles`"


def _options_of(provider: str) -> Any:
    """Return the rules and the known keys of this network's options."""
    table = registry.OPTIONS[provider]
    parent = find_post_option(table)

    def check(given: dict[str, Any]) -> dict[str, Any]:
        for key in parent.spellings if parent else ():
            if given.get(key, "") is None:
                message = "must be the id of a post, not null; leave it out to publish a post that is not a reply"
                raise inner_errors([((key,), message)], 1)
        return given

    return AfterValidator(check), Keys(tuple(option.name for option in table))


class ProviderOptions(Shape):
    """Options by network. Only networks of the selected profiles are allowed. Options of the post override the
    defaults stored with the profile."""

    x: Annotated[FreeForm, *_options_of("x"), AlsoCalled(("twitter",))] = optional("Options for X")
    tiktok: Annotated[FreeForm, *_options_of("tiktok")] = optional("Options for TikTok")
    pinterest: Annotated[FreeForm, *_options_of("pinterest")] = optional("Options for Pinterest")

    def as_dict(self) -> dict[str, dict[str, Any]]:
        return {name: getattr(self, name) for name in type(self).model_fields if name in self.model_fields_set}

    @classmethod
    def extended_fields(cls, extensions: tuple[str, ...]) -> dict[str, Any]:
        return {
            name: (Annotated[FreeForm, *_options_of(name)], optional(f"Options for {LABELS[name]}"))
            for name in extensions
        }


URL = (
    "The URL of the file. The appliance fetches the file before it accepts the post. `POST /posts/validate` does not "
    "fetch it"
)


class MediaReference(Shape):
    """A media file of a post. Set exactly one of `artifactId` and `url`."""

    artifact_id: Id = optional("The `artifactId` of a verified upload")
    url: MediaUrl = optional(URL)
    alt: Alt = optional(ALT)


_SOURCES = ("artifactId", "url")


def _check_sources(body: Mapping[str, Any], sources: Sequence[str]) -> list[FieldError]:
    """Return an error for each media item of the body without exactly one source."""
    media = body.get("media")
    message = f"must have exactly one of {', '.join(sources[:-1])} and {sources[-1]}"
    return [
        FieldError(("media", index), message)
        for index, item in enumerate(media if isinstance(media, list) and len(media) <= MAX_MEDIA else ())
        if isinstance(item, dict) and sum(source in item for source in sources) != 1
    ]


_TEXT = AlsoCalled(("text", "content", "caption", "message"))
TIME = AlsoCalled(("publishAt", "scheduleAt", "scheduledTime", "date", "time", "when"))


class PostContent(Shape):
    """The text and the time of a post."""

    body: Annotated[Trimmed, _TEXT] = optional(
        "The text. Surrounding white space is removed. Required if there is no media"
    )
    scheduled_at: Annotated[Instant, TIME] = optional(
        "When to publish: a future time with an offset. If omitted, the post is published now"
    )


class PostDraft(Shape):
    """A new post. Set `post.body`, `media`, or both."""

    media_sources: ClassVar[Sequence[str]] = _SOURCES

    post: PostContent = required(CONTENT)
    profiles: Ids = required(PROFILES)
    media: list[MediaReference] = Field(OMITTED, min_length=1, max_length=MAX_MEDIA, description=MEDIA)
    provider_options: ProviderOptions = optional(OPTIONS)

    @classmethod
    def check_object(cls, value: Any) -> Sequence[FieldError]:
        if not isinstance(value, dict):
            return []
        if "media" in value:
            return _check_sources(value, cls.media_sources)
        post = value.get("post")
        if isinstance(post, dict) and "body" not in post:
            return [FieldError(("post", "body"), "is required when there is no media", FieldCode.TEXT_MISSING)]
        return []

    def to_draft(self) -> Draft:
        return Draft(
            self.post.body,
            self.post.scheduled_at,
            tuple(self.profiles),
            _to_media(self.media) if self.media else (),
            self.provider_options.as_dict() if self.provider_options else None,
        )


class FormMediaItem(MediaReference):
    """A media file of a post in a multipart form. Set exactly one of `fileField`, `artifactId` and `url`."""

    file_field: Annotated[str, Field(min_length=1)] = optional("The name of the file part in the form")


class FormDraft(PostDraft):
    """A new post with its files in the same form. Set `post.body`, `media`, or both."""

    media_sources: ClassVar[Sequence[str]] = ("fileField", *_SOURCES)

    media: list[FormMediaItem] = Field(  # type: ignore[assignment]  # items of another shape
        OMITTED, min_length=1, max_length=MAX_MEDIA, description=MEDIA
    )


class ContentChange(Shape):
    """The new text and time of a post."""

    body: Annotated[Trimmed, _TEXT] = optional("The new text")
    scheduled_at: Annotated[InstantOrNull, TIME] = optional(
        "The new time: a future time with an offset. `null` publishes the post now"
    )


class PostChange(Shape):
    """Changes to a scheduled post. At least one field is required. A field may repeat its current value."""

    # The schema excludes {}. Only the description excludes {"post": {}}.
    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    post: ContentChange = optional(CONTENT)
    media: list[MediaReference] = Field(
        OMITTED,
        max_length=MAX_MEDIA,
        description="The new list of media files. It replaces the old list and may be empty if there is a body",
    )
    provider_options: ProviderOptions = optional("The new options. They replace all options of the post")

    @classmethod
    def check_object(cls, value: Any) -> Sequence[FieldError]:
        if isinstance(value, dict) and (value == {} or value == {"post": {}}):
            return [FieldError((), "does not contain a change; send at least one field")]
        return _check_sources(value, _SOURCES) if isinstance(value, dict) else []

    def to_draft(self) -> Draft:
        fields: dict[str, Any] = {}
        if self.post is not None:
            fields = {name: getattr(self.post, name) for name in self.post.model_fields_set}
        if self.media is not None:
            fields["media"] = _to_media(self.media)
        if self.provider_options is not None:
            fields["options"] = self.provider_options.as_dict()
        return Draft.change(**fields)


def _to_media(media: Sequence[MediaReference]) -> tuple[DraftMedia, ...]:
    return tuple(DraftMedia(item.artifact_id or "", item.alt, url=item.url) for item in media)


# --- bodies whose shape is invalid -----------------------------------------------------------------------------------


def check_rows(rt: Runtime, caller: Caller, value: Any, errors: Sequence[FieldError]) -> list[FieldError]:
    """Return the errors of valid fields that depend on stored rows and the clock."""
    body = _object(value)
    profiles = _readable(body.get("profiles"), read_id)
    media = _readable(body.get("media"), _read_media)
    all_readable = profiles is not None and len(profiles) == len(body["profiles"])
    options: dict[str, dict[str, Any]] | None = None
    if all_readable and profiles:
        options_given = _object(body.get("providerOptions"))
        seen = (*SPECIFIED, *api_keys.list_extensions(rt, caller))
        options = {name: _readable_options(options_given[name]) for name in seen if name in options_given}
    draft = Draft(
        body=None,
        scheduled_at=_instant(_object(body.get("post")).get("scheduledAt")),
        profiles=tuple((profiles or {}).values()),
        media=tuple((media or {}).values()),
        options=options,
    )
    try:
        drafts.check_targets(rt, rt.db, draft, caller, rt.now())
    except InvalidRequest as error:
        paths = {item.path for item in errors}
        indexes = {"profiles": list(profiles or ()), "media": list(media or ())}
        return [item for item in (_reindexed(item, indexes) for item in error.errors) if item.path not in paths]
    return []


def _reindexed(error: FieldError, indexes: dict[str, list[int]]) -> FieldError:
    """Restore the index of the request: the draft contains only readable items."""
    path: Path = error.path
    if len(path) > 1 and path[0] in indexes and isinstance(path[1], int):
        path = (path[0], indexes[str(path[0])][path[1]], *path[2:])
    return replace(error, path=path)


def _readable_options(value: Any) -> dict[str, Any]:
    try:
        return read_free_form(value)
    except PydanticCustomError:
        return {}


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _instant(value: Any) -> datetime | None:
    try:
        return read_instant(value)
    except PydanticCustomError:
        return None


def _read_media(value: Any) -> DraftMedia:
    item = _object(value)
    if isinstance(item.get("url"), str):
        return DraftMedia("", url=check_media_url(item["url"]))
    return DraftMedia(read_id(item.get("artifactId")))


def _readable(value: Any, read: Callable[[Any], T]) -> dict[int, T] | None:
    if not isinstance(value, list):
        return None
    readable: dict[int, T] = {}
    for index, item in enumerate(value[:100]):
        try:
            readable[index] = read(item)
        except PydanticCustomError:
            continue
    return readable


# --- the files of a form ----------------------------------------------------------------------------------------------


class PayloadForm(MultipartForm):
    """The form of a post: the field `payload` and the files to which the payload refers."""

    def __init__(self) -> None:
        super().__init__()
        self.payload = b""
        """The JSON, not yet parsed."""
        self._has_payload = False

    def is_file(self, head: PartHead) -> bool:
        if head.name == PAYLOAD:
            if self._has_payload:
                raise InvalidRequest.at(PAYLOAD, message="appears twice; send one text field with this name")
            self._has_payload = True
            return False
        if head.file_name is None and not (head.declared_type and multipart.is_accepted_type(head.declared_type)):
            raise InvalidRequest.at(head.name, message=f"is not a file; {PAYLOAD} is the only text field")
        return True

    def add_text(self, name: str, value: bytes) -> None:  # noqa: ARG002
        self.payload = value

    def check_file(self, part: FormPart) -> None:
        if part.is_too_large:
            raise PayloadTooLarge(
                f"The file part {cut(part.field)!r} ({cut(part.declared_type)}) may have at most "
                f"{units.size(part.max_bytes)}."
            )

    def finish(self) -> None:
        if not self._has_payload:
            raise InvalidRequest.at(PAYLOAD, message="is missing; send the JSON in one text field with this name")


async def verify_files(rt: Runtime, form: MultipartForm, body: FormDraft, key_id: str) -> Draft:
    """Match the file parts with the media items, examine them, and store them. Return the draft with the files.

    The files are removed again unless `posts.create` refers to them. Raises Unavailable, and InvalidRequest with every
    error of the first stage that fails (names, types, contents).
    """
    paths = _match(form, [item.file_field for item in body.media or ()])
    refused = [part for part in form.parts if part.incoming is None]
    if refused:
        raise InvalidRequest.from_errors(
            [FieldError(paths[part.field], uploads.explain_unaccepted(part.declared_type)) for part in refused]
        )
    results = await arrivals.examine(rt, form.parts, key_id)
    errors = [
        FieldError(paths[part.field], result.reason)
        for part, result in zip(form.parts, results, strict=True)
        if isinstance(result, MediaRejected)
    ]
    if errors:
        raise InvalidRequest.from_errors(errors)
    draft = body.to_draft()
    media = list(draft.media)
    for part, result in zip(form.parts, results, strict=True):
        assert isinstance(result, Facts)
        file = await arrivals.store(rt, part, result)
        index = int(paths[part.field][1])
        media[index] = DraftMedia(file.artifact_id, media[index].alt, file)
    return replace(draft, media=tuple(media))


def _match(form: MultipartForm, fields: Sequence[str | None]) -> dict[str, tuple[str | int, ...]]:
    """Return the path of each part's media item. Raises InvalidRequest unless exactly one item refers to each part."""
    paths: dict[str, tuple[str | int, ...]] = {}
    errors = []
    names = [part.field for part in form.parts]
    for index, name in enumerate(fields):
        if name is None:
            continue
        path = ("media", index, "fileField")
        if name in paths:
            errors.append(
                FieldError(path, f"refers to {cut(name)!r}, but an earlier media item already uses this file part")
            )
        elif names.count(name) == 0:
            errors.append(FieldError(path, f"refers to {cut(name)!r}, but the form does not contain this file part"))
        elif names.count(name) > 1:
            errors.append(
                FieldError(
                    path,
                    f"refers to {cut(name)!r}, but the form contains {names.count(name)} file parts with this name",
                )
            )
        paths.setdefault(name, path)
    errors += [
        FieldError(("media",), f"has no item with fileField {cut(name)!r}, but the form contains this file part")
        for name in dict.fromkeys(names)
        if name not in paths
    ]
    if errors:
        raise InvalidRequest.from_errors(errors)
    return paths
