"""The post to which a new or changed post replies (contract 10.7)."""

from collections.abc import Mapping
from typing import Any

from socialpub.accounts.api_keys import Caller
from socialpub.core.clock import parse_id
from socialpub.core.errors import FieldError
from socialpub.db.connection import Database
from socialpub.db.tables import audience_rows, delivery_rows, post_rows
from socialpub.db.tables.profile_rows import Profile
from socialpub.providers import options as option_tables
from socialpub.providers.registry import OPTIONS

UNKNOWN = "is not the id of a post; the page of a post and the API show its id"
CIRCLE = "makes the post wait for itself; use a post that does not reply to this post"


def find(
    store: Database, caller: Caller, profile: Profile, options: Mapping[str, Any], instead_of: str | None = None
) -> tuple[str | None, list[FieldError]]:
    """Return the first delivery of the post that these options name, and the errors.

    `instead_of`: the post that the draft changes or retries.
    """
    table = OPTIONS.get(profile.provider, ())
    option = option_tables.find_post_option(table)
    key = None if option is None else option_tables.spelled(option.name, table, options)
    if option is None or key is None:
        return None, []
    path = ("providerOptions", profile.provider, key)

    def refuse(message: str) -> tuple[None, list[FieldError]]:
        return None, [FieldError(path, message)]

    other = option_tables.spelled(option.sent_as, table, options)
    if other is not None:
        return refuse(f"cannot be combined with {other}; leave one of them out")
    named = options[key]
    post = post_rows.find(store, parse_id(named) or "") if isinstance(named, str) else None
    if post is None or not audience_rows.sees(store, caller, post.audience_id):
        return refuse(UNKNOWN)
    first = delivery_rows.find_first(store, post.id, profile.id)
    if first is None:
        return refuse(f"has no delivery to the profile “{profile.name}”; use a post to the same profile")
    own = instead_of and delivery_rows.find_first_of_account(store, instead_of, profile.provider, profile.account_id)
    if own and delivery_rows.replies_to_itself(store, first, own):
        return refuse(CIRCLE)
    return first, []
