"""Pinterest's refusals by our names for them: status, code, message."""

ERRORS: dict[str, tuple[int, int, str]] = {
    "invalid_request": (400, 1, "Invalid request."),
    "invalid_url": (400, 1, "Entered URL is invalid."),
    "unreachable_url": (400, 1, "Sorry! We are unable to reach the URL. Please check it and try again."),
    "2787": (400, 2787, "Sorry, something went wrong on our end."),
    "authentication_failed": (401, 2, "Authentication failed."),
    "unapproved": (401, 3, "Your application consumer type is not supported, please contact support."),
    "missing_scope": (403, 3, "Your token is missing the required scopes: pins:write"),
    "trial": (
        403,
        29,
        "Apps with Trial access may not create Pins in production. Use the API Sandbox (api-sandbox.pinterest.com).",
    ),
    "not_permitted": (403, 29, "You are not permitted to access that resource."),
    "pinner_data": (
        403,
        403,
        "PINNER_DATA_ACCESS_DENIED: this app may not read data of accounts that are no business.",
    ),
    "image_too_small": (403, 233, "The image is too small."),
    "image_broken": (403, 235, "The image is broken."),
    "account_disapproved": (403, 2625, "Your account was disapproved."),
    "account_under_review": (403, 2626, "Your account is under review."),
    "board_not_found": (404, 40, "Board not found."),
    "section_not_found": (404, 2031, "Board section not found."),
    "pin_not_found": (404, 50, "Pin not found."),
    "media_not_found": (404, 404, "Media upload not found."),
    "conflict": (409, 409, "Could not get exclusive access to the board. Please try again."),
    "rate_limited": (429, 8, "You have exceeded your rate limit. Try again later."),
    "spam": (429, 8, "This was blocked because it looks like spam."),
    "server_error": (500, 500, "Sorry, something went wrong."),
    "ramped_down": (503, 4197, "This endpoint is ramped down for now. Please try again later."),
}


def status_code_and_message(name: str) -> tuple[int, int, str]:
    """Status, code, message; ValueError for a name that is not in the list."""
    if name not in ERRORS:
        raise ValueError(f"pinterest has no refusal named {name!r} (known: {', '.join(ERRORS)})")
    return ERRORS[name]
