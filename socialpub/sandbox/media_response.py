"""Bytes shown to a browser: only as what it may show, and in ranges, so that videos can be wound."""

from starlette.requests import Request
from starlette.responses import Response

HEADERS = {
    "content-security-policy": "sandbox; default-src 'none'",
    "x-content-type-options": "nosniff",
    "accept-ranges": "bytes",
}


def media_response(request: Request, data: bytes | None, mime_type: str) -> Response:
    """The bytes, or a part of them; 404 when they are not kept."""
    if data is None:
        return Response(status_code=404)
    headers = dict(HEADERS)
    begin, end = _range(request.headers.get("range", ""), len(data))
    if (begin, end) != (0, len(data)):
        headers["content-range"] = f"bytes {begin}-{end - 1}/{len(data)}"
        return Response(data[begin:end], 206, headers, _shown_as(mime_type))
    return Response(data, 200, headers, _shown_as(mime_type))


def _shown_as(mime_type: str) -> str:
    """Only what a browser shows; anything else is a download."""
    shown = mime_type.split(";", 1)[0].strip().lower()
    return shown if shown.startswith(("image/", "video/")) and "svg" not in shown else "application/octet-stream"


def _range(header: str, size: int) -> tuple[int, int]:
    """The one range of a `Range` header; everything when there is none or it cannot be met."""
    unit, _, asked = header.partition("=")
    first, dash, last = asked.partition("-")
    if unit != "bytes" or not dash or "," in asked or not (first or last):
        return 0, size
    if not (first + last).isdecimal():
        return 0, size
    begin = int(first) if first else max(0, size - int(last))
    end = min(size, int(last) + 1) if first and last else size
    return (begin, end) if begin < end else (0, size)
