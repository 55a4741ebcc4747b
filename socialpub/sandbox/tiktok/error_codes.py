"""TikTok's refusals: which HTTP status a code comes with, and its message."""

ERRORS: dict[str, tuple[int, str]] = {
    "access_token_invalid": (401, "The access token is invalid or not found in the request."),
    "scope_not_authorized": (401, "The user did not authorize the scope required for completing this request."),
    "scope_permission_missed": (400, "A field is beyond the granted scopes."),
    "rate_limit_exceeded": (429, "The API rate limit was exceeded. Please try again later."),
    "invalid_param": (400, "A parameter of the request is not valid."),
    "invalid_params": (400, "One or more fields in the request are not valid."),
    "invalid_publish_id": (400, "The publish_id does not exist."),
    "token_not_authorized_for_specified_publish_id": (400, "The publish_id belongs to another user."),
    "publish_not_cancellable": (400, "The publishing has ended or cannot be stopped any more."),
    "app_version_check_failed": (400, "The user's TikTok app is too old for this; version 31.8 or newer is needed."),
    "spam_risk_too_many_posts": (403, "The daily cap of posts from the API is reached for this user."),
    "spam_risk_user_banned_from_posting": (403, "The user is banned from making new posts."),
    "spam_risk_too_many_pending_share": (403, "The user has too many shares that are still pending."),
    "reached_active_user_cap": (403, "The daily quota of posting users of this client is reached."),
    "unaudited_client_can_only_post_to_private_accounts": (
        403,
        "Clients that have not passed the audit can only post to private accounts.",
    ),
    "url_ownership_unverified": (403, "Verify the ownership of this URL's domain or prefix first."),
    "privacy_level_option_mismatch": (403, "The privacy level is missing or not one of this user's options."),
    "internal_error": (500, "Something is wrong. Please try again later."),
}
SENT_WITH_200 = frozenset({
    "spam_risk_too_many_posts", "spam_risk_user_banned_from_posting", "reached_active_user_cap",
})  # fmt: skip
"""By `creator_info`."""


def status_and_message(endpoint: str, code: str) -> tuple[int, str]:
    """Status and message; ValueError for a code that TikTok does not have."""
    if code not in ERRORS:
        raise ValueError(f"tiktok has no refusal named {code!r} (known: {', '.join(ERRORS)})")
    status, message = ERRORS[code]
    return (200 if endpoint == "creator_info" and code in SENT_WITH_200 else status), message
