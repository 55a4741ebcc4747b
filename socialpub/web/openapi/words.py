"""What the document says about the API as a whole, and about each group of calls."""

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
