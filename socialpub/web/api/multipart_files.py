"""The file parts of a form: matched with the media items that name them, examined, and stored."""

from collections.abc import Sequence

from socialpub.core.errors import FieldError, InvalidRequest, cut
from socialpub.media.types import Facts, MediaRejected
from socialpub.publishing import uploads
from socialpub.publishing.uploads import Examined
from socialpub.runtime import Runtime
from socialpub.web import arrived_files
from socialpub.web.multipart import MultipartForm


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
    results = await arrived_files.examine(rt, form.parts, key_id)
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
        files[part.field] = await arrived_files.keep(rt, part, result)
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
        raise InvalidRequest.of(errors)
    return paths


def _unacceptable(errors: Sequence[FieldError]) -> InvalidRequest:
    return InvalidRequest.of(errors)
