"""X accounts, and `GET /2/users/me`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from socialpub.sandbox.call import Answer, Call, answer_json
from socialpub.sandbox.x import problems
from socialpub.sandbox.x.access import user_call
from socialpub.sandbox.x.fields import NEW_USER_FIELDS, OLD_USER_FIELDS
from socialpub.sandbox.x.query import known, listed

if TYPE_CHECKING:
    from socialpub.sandbox.tokens import Token
    from socialpub.sandbox.x.network import X

LONG_POST_TIERS = ("Premium", "PremiumPlus")


@dataclass(slots=True)
class Account:
    id: str
    username: str
    name: str
    subscription_type: str = "None"
    """`None`, `Basic`, `Premium`, `PremiumPlus`."""
    protected: bool = False
    suspended: bool = False
    max_length: int | None = None
    """Overrides what follows from the subscription."""

    @property
    def longest_post(self) -> int:
        if self.max_length is not None:
            return self.max_length
        return 25_000 if self.subscription_type in LONG_POST_TIERS else 280

    @property
    def verified_type(self) -> str:
        return "none" if self.subscription_type == "None" else "blue"


@user_call("GET /2/users/me", "tweet.read", "users.read")
def me(x: "X", call: Call, token: "Token") -> Answer:
    query = known(x, call, {"user.fields", "expansions", "tweet.fields", "post.fields"})
    fields = {"id", "name", "username"} | listed(x, query, "user.fields", NEW_USER_FIELDS, OLD_USER_FIELDS)
    account = x.account_of(token)
    if account is None:
        return problems.unauthorized()
    shown = _show(x, account, call.base_url)
    return answer_json(200, {"data": {name: shown[name] for name in shown if name in fields}})


def _show(x: "X", account: Account, base_url: str) -> dict[str, Any]:
    count_name = "post_count" if x.dialect == "new" else "tweet_count"
    return {
        "id": account.id,
        "name": account.name,
        "username": account.username,
        "created_at": "2020-01-01T00:00:00.000Z",
        "description": "",
        "profile_image_url": f"{base_url}/x/avatars/{account.username}_normal.svg",
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
