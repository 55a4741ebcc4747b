"""What the OpenAPI document says about each endpoint beyond its shapes: words, examples, code samples."""

import re
import shlex
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import orjson

from socialpub.web.http.shapes import Shape
from socialpub.web.openapi import schemas

# --- words -----------------------------------------------------------------------------------------------------------

PATH_PARAMETERS = {
    "id": "The profile, by its `id`",
    "postId": "The post, by its `id`",
}

TAGS = {
    "Posts": "A post is accepted at once and published in the background: one delivery for each profile. Whether a "
    "network would take it can be asked before (`POST /posts/validate`), how it went is read from the post, and why "
    "from its attempts. **What belongs together**: attempts and log entries name a delivery by `deliveryId`; the "
    "deliveries inside a post carry no id, but a post has one delivery per profile, so `profileId` and `provider` of "
    "an attempt find its delivery. `deliveryId` and `postId` join attempts and log entries. **Pages** are counted from "
    "0: `page=0` is the first, and the last is reached when `(page + 1) * perPage` is not below `pagination.total`.",
    "Uploads": "A file is uploaded in three steps: `POST /uploads` reserves room for it and answers with an "
    "`uploadUrl`; one PUT to that address brings the bytes; `POST /uploads/complete` examines them, and from then on "
    "posts may name the artifact. The addresses of storage (`uploadUrl`, and the `url` of artifacts and media) are "
    "taken from answers and used unchanged; they are signed, need no key, and end after a while. Small files may come "
    "with the post itself, as a form.",
    "Profiles": "Accounts that the owner of the appliance has connected. Their ids are the targets of posts.",
    "Publishing logs": "What happened to deliveries, over all posts.",
}


def introduction(base_url: str) -> str:
    """For somebody with a key and nothing else."""
    api = f"{base_url}/api/v1"
    return f"""Publishes to X, TikTok and Pinterest. Creating a post is an acceptance: the answer is there at once, \
and the outcome of each delivery is read from the post.

Every call needs a key, which the owner of the appliance makes in its dashboard, under Keys, or with \
`socialpub admin create-key NAME`. The first post, from a shell (`PROFILE_ID` stands for an `id` of the first answer, \
`POST_ID` for that of the second):

```sh
curl -H "Authorization: Bearer $KEY" {api}/profiles
curl -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' {api}/posts \\
  -d '{{"post": {{"body": "Hello from my own machine"}}, "profiles": ["PROFILE_ID"]}}'
curl -H "Authorization: Bearer $KEY" '{api}/posts/POST_ID?wait=30'
```

Answers carry what was asked for under `data`; a field that is left out has no value. Times are RFC 3339: answers are \
in UTC with milliseconds, requests may have any offset but need one. Unknown fields and parameters are refused. Every \
failure is a problem (`application/problem+json`): branch on its `code`, and read in `errors` which field to change. \
Every answer carries `X-Request-Id`, which is the caller's own when the request had one, and is in the appliance's log \
as well."""


# --- operations ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Operation:
    """`answers` maps a status to what it means, its shape and an example; `problems` are failures beyond the usual ones
    and those that mean something particular here: status, and what it means."""

    id: str
    tag: str
    summary: str
    answers: dict[int, tuple[str, type[Shape] | None, Any]]
    problems: dict[int, str] = field(default_factory=dict)
    request: Any = None
    """An example of the JSON body."""
    payload: Any = None
    """An example of the `payload` of a form."""
    query: str = ""
    """An example of the query."""
    notes: str = ""
    headers: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """Headers of an answer beyond those that every answer has."""


EXAMPLES: dict[str, Any] = orjson.loads(resources.files(__package__).joinpath("examples.json").read_bytes())

_KEY_CLASH = "The `Idempotency-Key` belongs to another request, or to one that still runs"

# In the order of the document and of the page: what most callers come for stands first.
OPERATIONS = {
    "POST /api/v1/posts": Operation(
        "createPost",
        "Posts",
        "Create a post",
        {201: ("Accepted. How it ends is read from the post", schemas.PostAnswer, {"data": EXAMPLES["post"]})},
        problems={409: _KEY_CLASH},
        request=EXAMPLES["draft"],
        payload=EXAMPLES["payload"],
        headers={201: ("Location",)},
        notes="Published now, or at `post.scheduledAt`. A post has a body, media, or both. Media is uploaded before "
        "and named by `artifactId`, or comes in the same request: in a form, the text field `payload` holds the JSON, "
        "and each media item names its file part by `fileField` in place of `artifactId`. What a network would not "
        "take fails that network's delivery and no other.",
    ),
    "GET /api/v1/posts": Operation(
        "listPosts",
        "Posts",
        "List posts",
        {
            200: (
                "A page of posts, newest first",
                schemas.PostsAnswer,
                {"data": [EXAMPLES["post"]], "pagination": EXAMPLES["pagination"]},
            )
        },
        query="status=scheduled&page=0",
        notes="Pages are counted from 0.",
    ),
    "POST /api/v1/posts/validate": Operation(
        "validatePost",
        "Posts",
        "Check what the networks would refuse",
        {
            200: (
                "What each network would say; nothing is stored",
                schemas.ValidationAnswer,
                {"data": EXAMPLES["validation"]},
            )
        },
        request=EXAMPLES["draft"],
        notes="Takes the JSON of `POST /posts`. What that would refuse is refused here as well.",
    ),
    "GET /api/v1/posts/{postId}": Operation(
        "getPost",
        "Posts",
        "Get a post",
        {200: ("The post, with the outcome of each delivery", schemas.PostAnswer, {"data": EXAMPLES["settledPost"]})},
        query="wait=30",
        notes="With `wait` it is answered as soon as the post is settled or canceled, else after that many seconds "
        "with what is true then: a script needs no loop.",
    ),
    "PATCH /api/v1/posts/{postId}": Operation(
        "updatePost",
        "Posts",
        "Change a scheduled post",
        {200: ("The post as it is now", schemas.PostAnswer, {"data": EXAMPLES["post"]})},
        problems={409: "The post is not scheduled for a time to come"},
        request=EXAMPLES["change"],
        notes="At least one field is needed; fields that are left out stay as they are. `post.scheduledAt: null` "
        "publishes at once.",
    ),
    "POST /api/v1/posts/{postId}/cancel": Operation(
        "cancelPost",
        "Posts",
        "Cancel a scheduled post",
        {200: ("The canceled post", schemas.PostAnswer, {"data": EXAMPLES["canceledPost"]})},
        problems={409: "The post is not scheduled, or has started"},
        notes="Its deliveries are canceled with it. It needs no body.",
    ),
    "POST /api/v1/posts/{postId}/retry": Operation(
        "retryPost",
        "Posts",
        "Publish a post again where it failed",
        {201: ("The new post, to be published now", schemas.PostAnswer, {"data": EXAMPLES["retriedPost"]})},
        problems={409: f"Nothing of it is left to be published again. {_KEY_CLASH}"},
        request=EXAMPLES["retryRequest"],
        headers={201: ("Location",)},
        notes="Makes a new post for the profiles whose delivery is `failed`, with the same text, media and options. "
        "What failed with `Outcome unknown:` may be public already and is left out, unless `includeUnknown` is `true`. "
        "A delivery is not tried again while another try of it is on its way, nor once one of them was published: "
        "asking twice never posts twice. A profile disconnected since, and media whose bytes were removed, are a "
        "400. An empty body is allowed.",
    ),
    "GET /api/v1/posts/{postId}/attempts": Operation(
        "listAttempts",
        "Posts",
        "List the attempts of a post",
        {200: ("Every attempt, oldest first", schemas.AttemptsAnswer, {"data": [EXAMPLES["attempt"]]})},
        notes="Why the post is as it is. The last attempt of a waiting delivery says what it waits for, and until "
        "when. The deliveries inside a post carry no id: `profileId` and `provider` tell to which of them an attempt "
        "belongs, and `deliveryId` joins attempts and log entries. A post that only waits for its time has none.",
    ),
    "POST /api/v1/uploads": Operation(
        "reserveUpload",
        "Uploads",
        "Reserve an upload",
        {201: ("Where the bytes go, with one PUT", schemas.ReservationAnswer, {"data": EXAMPLES["reservation"]})},
        problems={
            409: _KEY_CLASH,
            503: "There is no room for the file now: the disk is full, or media have used up the quota that the owner "
            "set for them. Posts that bring no new file go on",
        },
        request=EXAMPLES["uploadRequest"],
        notes="The bytes then go to `uploadUrl` with one PUT, which carries `requiredHeaders` and no key. "
        "`POST /uploads/complete` is the third and last step.",
    ),
    "POST /api/v1/uploads/complete": Operation(
        "completeUpload",
        "Uploads",
        "Complete an upload",
        {200: ("The verified artifact", schemas.ArtifactAnswer, {"data": EXAMPLES["artifact"]})},
        problems={409: "Other bytes keep arriving for this upload"},
        request=EXAMPLES["completeRequest"],
        notes="The bytes are examined, which can take a moment. A file that is not what it was declared to be is "
        "rejected: 400 says why, and its bytes are removed. Completing a verified upload again gives the same answer.",
    ),
    "GET /api/v1/profiles": Operation(
        "listProfiles",
        "Profiles",
        "List profiles",
        {
            200: (
                "Every profile in the key's scope, oldest first",
                schemas.ProfilesAnswer,
                {"data": [EXAMPLES["profile"]]},
            )
        },
        notes="Their ids are the targets of posts. Accounts are connected by the owner, not through the API.",
    ),
    "GET /api/v1/profiles/{id}": Operation(
        "getProfile",
        "Profiles",
        "Get a profile",
        {200: ("The profile", schemas.ProfileAnswer, {"data": EXAMPLES["profile"]})},
        notes="Whether the account can be used, and until when.",
    ),
    "POST /api/v1/profiles/{id}/disconnect": Operation(
        "disconnectProfile",
        "Profiles",
        "Disconnect a profile",
        {204: ("It is disconnected, for good", None, None)},
        notes="It may be repeated, and needs no body. Scheduled posts that target the profile fail at delivery time.",
    ),
    "GET /api/v1/publish/logs": Operation(
        "listLogs",
        "Publishing logs",
        "List publishing logs",
        {200: ("What happened to deliveries, newest first", schemas.LogsAnswer, {"data": [EXAMPLES["logEntry"]]})},
        query="limit=50&offset=0",
        notes="`deliveryId` is that of the attempts; `offset` is counted from 0.",
    ),
}


# --- code samples ----------------------------------------------------------------------------------------------------

_KEY = '-H "Authorization: Bearer $KEY"'
_JSON = "-H 'Content-Type: application/json'"
_OF_PATH = {"{id}": EXAMPLES["profile"]["id"], "{postId}": EXAMPLES["post"]["id"]}


def code_samples(base_url: str, method: str, path: str, operation: Operation) -> list[dict[str, str]]:
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
