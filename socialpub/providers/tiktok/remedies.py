"""What the owner does about a permission that is missing."""

from collections.abc import Sequence


def how_to_grant(scope: str, asked: Sequence[str]) -> str:
    """What the owner does when a scope is missing; `asked` are those that accounts are connected with."""
    first = "" if not asked or scope in asked else "add it to scopes of [providers.tiktok], then "
    return f"{first}connect the account again"
