"""The two addresses of storage in the OpenAPI document: a signed URL instead of a key, bytes instead of JSON."""

from typing import Any

_PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
_ID = {"X-Request-Id": {"$ref": "#/components/headers/X-Request-Id"}}
_RETRY = {"Retry-After": {"$ref": "#/components/headers/Retry-After"}}


def _parameter(place: str, name: str, **schema: Any) -> dict[str, Any]:
    return {"name": name, "in": place, "required": place != "header", "schema": {"type": "string", **schema}}


def _problem(description: str, **headers: Any) -> dict[str, Any]:
    return {"description": description, "headers": {**_ID, **headers}, "content": _PROBLEM}


def _bytes(description: str, **headers: Any) -> dict[str, Any]:
    shown = {name: {"schema": {"type": "string"}} for name in headers}
    content = {"*/*": {"schema": {"type": "string", "format": "binary"}}}
    return {"description": description, "headers": {**_ID, **shown}, "content": content}


_SIGNATURE = [_parameter("query", "expires"), _parameter("query", "signature")]
_USUAL = {
    "405": _problem("Method not allowed"),
    "500": _problem("Internal error"),
    "503": _problem("Unavailable", **_RETRY),
}

STORAGE_PATHS: dict[str, Any] = {
    "/storage/uploads/{artifactId}": {
        "put": {
            "operationId": "putUpload",
            "tags": ["Uploads"],
            "summary": "Send the bytes of an upload",
            "description": "The `uploadUrl` of a reservation, used unchanged. Before completion it may be repeated: "
            "the last PUT that arrived whole counts.",
            "security": [],
            "parameters": [_parameter("path", "artifactId", format="uuid"), *_SIGNATURE],
            "requestBody": {
                "required": True,
                "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}},
            },
            "responses": {
                "200": {
                    "description": "The bytes are on the disk",
                    "headers": {**_ID, "ETag": {"schema": {"type": "string"}}},
                },
                "400": _problem("Fewer bytes or another type than reserved"),
                "403": _problem("The signature is not valid, or its time is over"),
                "409": _problem("The upload is complete or was rejected, or two PUTs of it are on their way already"),
                "413": _problem("More bytes than reserved"),
                **_USUAL,
            },
        }
    },
    "/storage/media/{key}": {
        "get": {
            "operationId": "readMedia",
            "tags": ["Uploads"],
            "summary": "Read a stored file",
            "description": "The `url` of an artifact or a media item, used unchanged (its path may hold slashes). "
            "HEAD is answered like GET.",
            "security": [],
            "parameters": [_parameter("path", "key"), *_SIGNATURE, _parameter("header", "Range")],
            "responses": {
                "200": _bytes("The file", ETag="", **{"Accept-Ranges": ""}),
                "206": _bytes("The requested range", ETag="", **{"Content-Range": ""}),
                "304": {"description": "The file is the one that If-None-Match names", "headers": _ID},
                "403": _problem("The signature is not valid, or its time is over"),
                "404": _problem("The file is not here any more"),
                "416": _problem("Nothing of the file is in the requested range"),
                **_USUAL,
            },
        }
    },
}
