"""`GET /2/users/me`."""

from typing import Any

from socialpub.sandbox.reply import Reply, json_reply
from socialpub.sandbox.request import SandboxRequest
from socialpub.sandbox.x.access import XCaller, user_call
from socialpub.sandbox.x.models import XAccount
from socialpub.sandbox.x.network import XSandbox
from socialpub.sandbox.x.query import NEW_USER_FIELDS, OLD_USER_FIELDS, checked_query, field_list


@user_call("GET /2/users/me", "tweet.read", "users.read")
def me(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    query = checked_query(x, request, {"user.fields", "expansions", "tweet.fields", "post.fields"})
    fields = {"id", "name", "username"} | field_list(x, query, "user.fields", NEW_USER_FIELDS, OLD_USER_FIELDS)
    user = _user_json(x, caller.account, request.base_url)
    return json_reply(200, {"data": {name: user[name] for name in user if name in fields}})


def _user_json(x: XSandbox, account: XAccount, base_url: str) -> dict[str, Any]:
    count_name = "post_count" if x.dialect == "new" else "tweet_count"
    return {
        "id": account.id,
        "name": account.name,
        "username": account.username,
        "created_at": "2020-01-01T00:00:00.000Z",
        "description": "",
        "profile_image_url": f"{base_url}/x/avatars/{account.picture or account.username}_normal.png",
        "protected": account.protected,
        "public_metrics": {
            "followers_count": 0,
            "following_count": 0,
            count_name: sum(1 for post in x.posts_of(account) if post.deleted_at is None),
            "listed_count": 0,
        },
        "subscription_type": account.subscription_type,
        "verified": account.verified_type != "none",
        "verified_type": account.verified_type,
    }
