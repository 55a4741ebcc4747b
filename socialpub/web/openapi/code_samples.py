"""Lines for a shell that make each call, from the same examples as the rest of the document.

They stand under `x-codeSamples`, where tools that show such documents look for them. `$KEY` is the caller's API key.
"""

import re
import shlex
from typing import Any

import orjson

from socialpub.web.openapi.operations import EXAMPLES, Operation

_KEY = '-H "Authorization: Bearer $KEY"'
_JSON = "-H 'Content-Type: application/json'"
_OF_PATH = {"{id}": EXAMPLES["profile"]["id"], "{postId}": EXAMPLES["post"]["id"]}


def of(base_url: str, method: str, path: str, operation: Operation) -> list[dict[str, str]]:
    """The samples of one operation: `lang`, `label`, `source`."""
    address = base_url + re.sub(r"{\w+}", lambda name: _OF_PATH[name[0]], path)
    if operation.query:
        address += f"?{operation.query}"
    is_plain = method == "GET" or (method == "POST" and operation.request is not None)
    call = [f"curl {'' if is_plain else f'-X {method} '}{shlex.quote(address)}", _KEY]
    if operation.request is None:
        return [_sample("curl", *call)]
    samples = [_sample("curl", *call, _JSON, f"-d {_quoted(operation.request)}")]
    if operation.payload is not None:
        parts = [f"-F {item['fileField']}=@frost.jpg" for item in operation.payload["media"]]
        form = f"--form-string payload={_quoted(operation.payload)}"
        samples.append(_sample("curl, with the files in the same request", *call, *parts, form))
    if operation.id == "reserveUpload":
        samples.append(_put())
    return samples


def _put() -> dict[str, str]:
    """The second step of an upload, which goes to an address that only the answer to the first one tells."""
    headers = [
        f"-H {shlex.quote(f'{name}: {value}')}" for name, value in EXAMPLES["reservation"]["requiredHeaders"].items()
    ]
    name = EXAMPLES["uploadRequest"]["fileName"]
    return _sample(
        "curl, for the bytes; $UPLOAD_URL is the uploadUrl of the answer", f'curl -T {name} "$UPLOAD_URL"', *headers
    )


def _sample(label: str, *arguments: str) -> dict[str, str]:
    return {"lang": "Shell", "label": label, "source": " \\\n  ".join(arguments)}


def _quoted(example: Any) -> str:
    return shlex.quote(orjson.dumps(example, option=orjson.OPT_INDENT_2).decode())
