"""Query parameters of X's API: one of the two generations of names, never a mixture."""

from typing import TYPE_CHECKING

from socialpub.sandbox.x import problems

if TYPE_CHECKING:
    from socialpub.sandbox.call import Call
    from socialpub.sandbox.x.network import X

SHARED = frozenset({"expansions", "user.fields", "media.fields", "poll.fields", "place.fields"})


def known(x: "X", call: "Call", names: set[str]) -> dict[str, str]:
    """The query, when every parameter is one of `names` and none comes from the other generation."""
    query = call.query()
    for name in query:
        if name not in names:
            raise problems.invalid(
                x, f"The query parameter [{name}] is not one of {sorted(names)}", **{name: query[name]}
            )
    if "tweet.fields" in query and "post.fields" in query:
        raise problems.invalid(x, "tweet.fields and post.fields belong to different documents", **query)
    return query


def listed(x: "X", query: dict[str, str], name: str, new: frozenset[str], old: frozenset[str]) -> set[str]:
    """The members of a comma list, when one generation knows them all."""
    if name not in query:
        return set()
    fields = query[name].split(",")
    if len(set(fields)) != len(fields) or not (new.issuperset(fields) or old.issuperset(fields)):
        raise problems.invalid(
            x, f"The `{name}` query parameter value [{query[name]}] is not one of {sorted(new)}", **{name: query[name]}
        )
    return set(fields)
