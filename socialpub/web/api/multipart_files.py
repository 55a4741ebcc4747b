"""The file parts of a form: matched with the media items that name them, examined, and stored."""

import asyncio
from collections.abc import Sequence

from socialpub.core import ids
from socialpub.core.errors import FieldError, InvalidRequest, Unavailable
from socialpub.media import decoder_client
from socialpub.media.types import Facts, MediaRejected
from socialpub.publishing import uploads
from socialpub.publishing.uploads import Examined
from socialpub.runtime import Runtime
from socialpub.web.api.multipart import FormPart, MultipartForm


async def verify(rt: Runtime, form: MultipartForm, fields: Sequence[str | None], key_id: str) -> dict[str, Examined]:
    """Match the parts with the media items, examine them, and have them on the disk under their own names.

    `fields` holds the `fileField` of each media item, None for one that has an `artifactId`. Returns the files by
    field; `uploads.adopt` makes them stay. Raises InvalidRequest with all that is wrong at the first stage that fails
    (names, types, contents), and Unavailable.
    """
    paths = _match(form, fields)
    errors = [
        FieldError(paths[part.field], uploads.unaccepted(part.declared_type))
        for part in form.parts
        if part.incoming is None
    ]
    if errors:
        raise _unacceptable(errors)
    # Every one is waited for, also when one of them fails: a child process may not outlive the file it reads.
    results = await asyncio.gather(*(_examine(rt, part, key_id) for part in form.parts))
    for result in results:
        if isinstance(result, Unavailable):
            raise result
    errors = [
        FieldError(paths[part.field], result.reason)
        for part, result in zip(form.parts, results, strict=True)
        if isinstance(result, MediaRejected)
    ]
    if errors:
        raise _unacceptable(errors)
    files = {}
    for part, result in zip(form.parts, results, strict=True):
        assert isinstance(result, Facts)
        assert part.incoming is not None
        artifact_id = ids.new(int(rt.clock.now().timestamp() * 1000))
        storage_key = rt.files.new_key(artifact_id, result.mime_type)
        await asyncio.to_thread(part.incoming.keep, storage_key)
        declared_type = part.declared or result.mime_type
        files[part.field] = Examined(artifact_id, part.file_name, declared_type, storage_key, result, part.incoming)
    return files


def _match(form: MultipartForm, fields: Sequence[str | None]) -> dict[str, tuple[str | int, ...]]:
    """Where in the payload each part is named. Raises InvalidRequest unless each is named exactly once."""
    paths: dict[str, tuple[str | int, ...]] = {}
    errors = []
    names = [part.field for part in form.parts]
    for index, name in enumerate(fields):
        if name is None:
            continue
        path = ("media", index, "fileField")
        if name in paths:
            errors.append(FieldError(path, f"names {name!r}, as an earlier media item does already"))
        elif names.count(name) == 0:
            errors.append(FieldError(path, f"names {name!r}, and the form has no such file part"))
        elif names.count(name) > 1:
            errors.append(
                FieldError(
                    path,
                    f"names {name!r}, and the form has {names.count(name)} file parts of this name; names must differ",
                )
            )
        paths.setdefault(name, path)
    errors += [
        FieldError(("media",), f"has no item that names the file part {name!r}")
        for name in dict.fromkeys(names)
        if name not in paths
    ]
    if errors:
        raise InvalidRequest.of(errors)
    return paths


async def _examine(rt: Runtime, part: FormPart, key_id: str) -> Facts | MediaRejected | Unavailable:
    assert part.incoming is not None
    try:
        limits = uploads.limits(rt.settings)
        return await decoder_client.inspect_file_async(part.incoming.path, part.declared, limits, key_id=key_id)
    except MediaRejected as refused:
        return refused
    except decoder_client.DecoderFailed as error:
        unavailable = Unavailable("The files cannot be examined at the moment. Send the request again.")
        unavailable.__cause__ = error
        return unavailable


def _unacceptable(errors: Sequence[FieldError]) -> InvalidRequest:
    return InvalidRequest.of(errors)
