"""Descriptions, examples and code samples of each operation in the OpenAPI document."""

import re
import shlex
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, NamedTuple

import orjson

from socialpub.web.http.shapes import Shape
from socialpub.web.openapi import schemas

# --- texts -----------------------------------------------------------------------------------------------------------

PATH_PARAMETERS = {"id": "The `id` of the profile", "postId": "The `id` of the post"}

TAGS = {
    "Posts": "A post is accepted at once and published in the background, with one delivery per profile. `profileId` "
    "identifies a delivery inside a post, and `deliveryId` in attempts and log entries. A page is the last one when "
    "`(page + 1) * perPage` is at least `pagination.total`.",
    "Uploads": "`POST /uploads` reserves space, a PUT to `uploadUrl` sends the bytes, and `POST /uploads/complete` "
    "verifies them. `POST /uploads/import` does all this for a file at a URL. Storage URLs are signed and expire: use "
    "them unchanged.",
    "Profiles": "Accounts that the owner of the appliance has connected. Posts refer to their targets by profile id.",
    "Publishing logs": "What happened to the deliveries of all posts.",
}


def introduction(base_url: str, networks: str) -> str:
    api = f"{base_url}/api/v1"
    return f"""Publishes to {networks}. When you create a post, the response only confirms that the post \
was accepted. Read the post to see the outcome of each delivery.

Every call needs an API key. The owner of the appliance creates keys in the dashboard, under Keys, or with \
`socialpub admin create-key NAME`. To publish a first post from a shell, run the commands below. Replace `PROFILE_ID` \
with an `id` from the first response and `POST_ID` with the `id` from the second response.

```sh
curl -H "Authorization: Bearer $KEY" {api}/profiles
curl -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' {api}/posts \\
  -d '{{"post": {{"body": "Hello from my own server"}}, "profiles": ["PROFILE_ID"]}}'
curl -H "Authorization: Bearer $KEY" '{api}/posts/POST_ID?wait=30'
```

Successful responses contain the result in `data`. A field without a value is omitted. Date-times are RFC 3339. \
Responses use UTC with milliseconds. Requests may use any offset, but the offset is required. Unknown fields and \
parameters are refused. Every error is a problem document (`application/problem+json`). Branch on its `code`. On 400, \
`errors` lists the fields to change. Every response has an `X-Request-Id` header, and the log of the appliance \
contains the same id. If your request has this header, the appliance uses your id."""


# --- operations ------------------------------------------------------------------------------------------------------


class Success(NamedTuple):
    status: int
    meaning: str
    shape: type[Shape] | None
    example: Any


@dataclass(frozen=True)
class Operation:
    id: str
    tag: str
    summary: str
    success: Success
    problems: dict[int, str] = field(default_factory=dict)
    """By status: the descriptions of problems that only this operation has, or that have a special meaning here."""
    request: Any = None
    """An example of the JSON body."""
    payload: Any = None
    """An example of the `payload` of a form."""
    query: str = ""
    """An example of the query."""
    notes: str = ""


EXAMPLES: dict[str, Any] = orjson.loads(resources.files(__package__).joinpath("examples.json").read_bytes())


def _data(name: str) -> dict[str, Any]:
    return {"data": EXAMPLES[name]}


_KEY_CLASH = "The `Idempotency-Key` belongs to a different request, or the first request with this key is still running"

# The document and the page keep this order: the most common operations come first.
OPERATIONS = {
    "POST /api/v1/posts": Operation(
        "createPost",
        "Posts",
        "Create a post",
        Success(201, "The post was accepted. Read the post to see its outcome", schemas.PostAnswer, _data("post")),
        problems={409: _KEY_CLASH},
        request=EXAMPLES["draft"],
        payload=EXAMPLES["payload"],
        notes="Publishes now, or at `post.scheduledAt`. Send media by `artifactId`, by `url`, or as parts of a form "
        "with the JSON in `payload`. If a `url` cannot be fetched, nothing is accepted. A refusal by one network fails "
        "only its deliveries. Some keys need approval.",
    ),
    "GET /api/v1/posts": Operation(
        "listPosts",
        "Posts",
        "List posts",
        Success(
            200,
            "A page of posts, newest first",
            schemas.PostsAnswer,
            {"data": [EXAMPLES["post"]], "pagination": EXAMPLES["pagination"]},
        ),
        query="status=scheduled&page=0",
        notes="Pages are numbered from 0.",
    ),
    "POST /api/v1/posts/validate": Operation(
        "validatePost",
        "Posts",
        "Check a post without publishing it",
        Success(
            200, "What each network would refuse. Nothing is stored", schemas.ValidationAnswer, _data("validation")
        ),
        request=EXAMPLES["draft"],
        notes="Accepts the JSON body of `POST /posts`. This endpoint returns 400 for the same bodies as `POST /posts`, "
        "except that it does not fetch media with a `url`. `notes` then says so.",
    ),
    "GET /api/v1/posts/{postId}": Operation(
        "getPost",
        "Posts",
        "Get a post",
        Success(200, "The post, with the status of each delivery", schemas.PostAnswer, _data("settledPost")),
        query="wait=30",
        notes="With `wait`, the response is sent as soon as the post is settled or canceled. After that many seconds, "
        "the response contains the current state. You do not need a polling loop.",
    ),
    "PATCH /api/v1/posts/{postId}": Operation(
        "updatePost",
        "Posts",
        "Change a scheduled post",
        Success(200, "The changed post", schemas.PostAnswer, _data("post")),
        problems={409: "The post is not scheduled for a future time"},
        request=EXAMPLES["change"],
        notes="At least one field is required. Omitted fields do not change. `post.scheduledAt: null` publishes the "
        "post now. The appliance fetches media with a `url` before it changes the post. "
        "A key with a limit on its posts gets 403 for a post of another key.",
    ),
    "POST /api/v1/posts/{postId}/cancel": Operation(
        "cancelPost",
        "Posts",
        "Cancel a scheduled post",
        Success(200, "The canceled post", schemas.PostAnswer, _data("canceledPost")),
        problems={409: "The post is not scheduled, or publishing has started"},
        notes="Also cancels the deliveries of the post. The request does not need a body. A key with a limit on its "
        "posts gets 403 for a post of another key.",
    ),
    "POST /api/v1/posts/{postId}/retry": Operation(
        "retryPost",
        "Posts",
        "Publish the failed deliveries of a post again",
        Success(201, "The new post, which is published now", schemas.PostAnswer, _data("retriedPost")),
        problems={409: f"No delivery of the post can be retried. {_KEY_CLASH}"},
        request=EXAMPLES["retryRequest"],
        notes="Creates a new post with the same content for the profiles whose delivery is `failed`. Deliveries with "
        "`Outcome unknown:` may be public, so they need `includeUnknown`. Repeating the request never publishes "
        "twice. The body may be empty.",
    ),
    "GET /api/v1/posts/{postId}/attempts": Operation(
        "listAttempts",
        "Posts",
        "List the attempts of a post",
        Success(200, "Every attempt, oldest first", schemas.AttemptsAnswer, {"data": [EXAMPLES["attempt"]]}),
        notes="Explains the state of a post. The last attempt of a waiting delivery says what it waits for. "
        "`profileId` and `provider` identify the delivery. A post that waits for its time does not have attempts.",
    ),
    "POST /api/v1/uploads": Operation(
        "reserveUpload",
        "Uploads",
        "Reserve an upload",
        Success(
            201, "The reservation, with the URL for the PUT request", schemas.ReservationAnswer, _data("reservation")
        ),
        problems={
            409: _KEY_CLASH,
            503: "There is no space for the file at the moment. The disk is full, or media uses the whole quota that "
            "the owner set. Posts without new files still work",
        },
        request=EXAMPLES["uploadRequest"],
        notes="Reserves space for one file. Next, send the bytes to `uploadUrl` with one PUT request. Send "
        "`requiredHeaders`. The request does not need a key. Finally, call `POST /uploads/complete`.",
    ),
    "POST /api/v1/uploads/complete": Operation(
        "completeUpload",
        "Uploads",
        "Complete an upload",
        Success(200, "The verified artifact", schemas.ArtifactAnswer, _data("artifact")),
        problems={409: "Another PUT request for this upload is still running"},
        request=EXAMPLES["completeRequest"],
        notes="Verifies the bytes, which can take a moment. If the file does not match its declared type, the upload "
        "is rejected and its bytes are removed. The response is then 400 with the reason. Completing a verified upload "
        "again returns the same artifact.",
    ),
    "POST /api/v1/uploads/import": Operation(
        "importUpload",
        "Uploads",
        "Import a file from a URL",
        Success(200, "The verified artifact", schemas.ArtifactAnswer, _data("artifact")),
        problems={
            409: _KEY_CLASH,
            503: "Too many other requests fetch files at the moment, or there is no space for the file",
        },
        request=EXAMPLES["importRequest"],
        notes="Fetches the file within 100 seconds and verifies it. The bytes decide the type. The host must be "
        "public, unless the owner allows it. If the file cannot be fetched, the response is 400 with the reason. The "
        "signed URL of an artifact returns that artifact.",
    ),
    "GET /api/v1/profiles": Operation(
        "listProfiles",
        "Profiles",
        "List profiles",
        Success(
            200,
            "Every profile in the scope of the key, oldest first",
            schemas.ProfilesAnswer,
            {"data": [EXAMPLES["profile"]]},
        ),
        notes="Use the profile ids as targets of posts. The owner connects accounts. The API cannot connect accounts.",
    ),
    "GET /api/v1/profiles/{id}": Operation(
        "getProfile",
        "Profiles",
        "Get a profile",
        Success(200, "The profile", schemas.ProfileAnswer, _data("profile")),
        notes="Shows whether the account can be used, and until when.",
    ),
    "GET /api/v1/profiles/{id}/choices": Operation(
        "getChoices",
        "Profiles",
        "Get the choices of a profile",
        Success(200, "Every option of the network, with its values", schemas.ChoicesAnswer, _data("choices")),
        problems={
            409: "The account must be connected again, or is disconnected",
            503: "The network does not answer, or refuses queries for now. Send the request again after `Retry-After`",
        },
        notes="Lists the boards of a Pinterest account and the privacy levels that TikTok offers the account now. The "
        "appliance asks the network, and uses the answer for a minute.",
    ),
    "POST /api/v1/profiles/{id}/disconnect": Operation(
        "disconnectProfile",
        "Profiles",
        "Disconnect a profile",
        Success(204, "The profile is disconnected permanently", None, None),
        notes="Repeating the request changes nothing. The request does not need a body. Scheduled posts to the "
        "profile fail at their scheduled time. A key with a limit on its posts gets 403.",
    ),
    "GET /api/v1/publish/logs": Operation(
        "listLogs",
        "Publishing logs",
        "List publishing logs",
        Success(
            200, "What happened to the deliveries, newest first", schemas.LogsAnswer, {"data": [EXAMPLES["logEntry"]]}
        ),
        query="limit=50&offset=0",
        notes="Attempts have the same `deliveryId` as log entries. `offset` is counted from 0. To follow the log, send "
        "`after=start` once, then `after` with the last id of each response. The entries are in the order of writing.",
    ),
}


# --- code samples ----------------------------------------------------------------------------------------------------

_KEY = '-H "Authorization: Bearer $KEY"'
_JSON = "-H 'Content-Type: application/json'"
_EXAMPLE_IDS = {"{id}": EXAMPLES["profile"]["id"], "{postId}": EXAMPLES["post"]["id"]}


def code_samples(base_url: str, method: str, path: str, operation: Operation) -> list[dict[str, str]]:
    address = base_url + re.sub(r"{\w+}", lambda name: _EXAMPLE_IDS[name[0]], path)
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
        samples.append(_sample("curl, with the files in a form", *call, *parts, form))
    if operation.id == "reserveUpload":
        # The second step goes to a URL that only the response to the first step contains.
        required = EXAMPLES["reservation"]["requiredHeaders"].items()
        put = f'curl -T {EXAMPLES["uploadRequest"]["fileName"]} "$UPLOAD_URL"'
        headers = [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in required]
        samples.append(_sample("curl, to send the bytes; $UPLOAD_URL is the uploadUrl of the response", put, *headers))
    return samples


def _sample(label: str, *arguments: str) -> dict[str, str]:
    return {"lang": "Shell", "label": label, "source": " \\\n  ".join(arguments)}


def _quoted(example: Any) -> str:
    return shlex.quote(orjson.dumps(example, option=orjson.OPT_INDENT_2).decode())
