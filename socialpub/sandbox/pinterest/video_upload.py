"""The upload host: a multipart form with the video.

The form is the credential; every field of it must come back unchanged, and the file last.
"""

from socialpub.sandbox.pinterest.models import FAILED, MAX_BYTES, REGISTERED, SUCCEEDED, PinterestMedia
from socialpub.sandbox.pinterest.network import PinterestSandbox
from socialpub.sandbox.reply import Reply
from socialpub.sandbox.request import SandboxRequest
from socialpub.sandbox.sniff import sniff
from socialpub.sandbox.streamed_body import StreamedBody, StreamedForm
from socialpub.sandbox.video_probe import probe_video

SECONDS = (4, 900)
ASPECT_RATIOS = (0.5, 1.91)


def open_sink(pinterest: PinterestSandbox, request: SandboxRequest) -> StreamedForm:  # noqa: ARG001
    return StreamedForm(request.headers.get("content-type", ""))


def upload(pinterest: PinterestSandbox, request: SandboxRequest) -> Reply:
    form: StreamedForm = request.sink
    if "content-length" not in request.headers:
        return _xml(411, "MissingContentLength", "You must provide the Content-Length HTTP header.")
    if "authorization" in request.headers:
        return _xml(400, "InvalidArgument", "Only one auth mechanism allowed: the form is signed.")
    if not form.whole or form.file is None:
        return _xml(400, "MalformedPOSTRequest", "The body is no well-formed multipart form with a file.")
    if not form.file_last:
        return _xml(400, "InvalidArgument", "The file must be the last field of the form.")
    fields = dict(form.fields)
    media = pinterest.media_of_key(fields.get("key", ""))
    if media is None or fields != media.form or len(form.fields) != len(media.form):
        return _xml(403, "AccessDenied", "Invalid according to Policy: a field is missing, changed or too many.")
    if pinterest.timestamp() >= media.form_expires_at:
        return _xml(403, "AccessDenied", "Invalid according to Policy: Policy expired.")
    if media.uploads and pinterest.forms_good_once:
        return _xml(403, "AccessDenied", "The form has been used.")
    if not 1 <= form.file.size <= MAX_BYTES:
        code = "EntityTooLarge" if form.file.size else "EntityTooSmall"
        return _xml(400, code, "Your proposed upload is outside of the allowed size.")
    _take(pinterest, media, form.file)
    return Reply(204)


def _take(pinterest: PinterestSandbox, media: PinterestMedia, file: StreamedBody) -> None:
    media.uploads += 1
    if media.status == SUCCEEDED:
        return
    media.mime_type, media.size, media.sha256 = sniff(file.head), file.size, file.sha256
    media.status, media.looks = REGISTERED, 0
    media.fate = pinterest.fates.take(pinterest.processing)
    data = file.data
    if media.mime_type not in ("video/mp4", "video/quicktime") or (
        pinterest.probes_video and data is not None and not _fits(data)
    ):
        media.fate = "fails"
    if pinterest.processing_ticks == 0 and media.fate != "never_ends":
        media.status = SUCCEEDED if media.fate == "succeeds" else FAILED
    if data is not None:
        pinterest.cache.put(media.id, data)
    pinterest.write_media(media)


def _fits(data: bytes) -> bool:
    found = probe_video(data)
    if found is None or not found.height:
        return False
    ratio = found.width / found.height
    return (
        SECONDS[0] - 0.05 <= found.seconds <= SECONDS[1] + 0.5
        and ASPECT_RATIOS[0] - 0.01 <= ratio <= ASPECT_RATIOS[1] + 0.01
    )


def _xml(status: int, code: str, message: str) -> Reply:
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>'
    return Reply(status, body.encode(), "application/xml")
