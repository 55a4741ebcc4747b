"""`GET /user_account`."""

from typing import TYPE_CHECKING

from socialpub.sandbox.call import Answer, Call

if TYPE_CHECKING:
    from socialpub.sandbox.pinterest.network import Pinterest


def user_account(pinterest: "Pinterest", call: Call) -> Answer:
    if pinterest.unapproved:
        return pinterest.error(401, 3, "Your application consumer type is not supported, please contact support.")
    token = pinterest.tokens.bearer(call.bearer)
    account = pinterest.accounts.get(token.account_id) if token else None
    if token is None or account is None:
        return pinterest.unauthorized_answer()
    if "user_accounts:read" not in token.scopes:
        return pinterest.error(403, 3, "Your token lacks the scopes: user_accounts:read")
    return pinterest.answer(
        200,
        {
            "id": account.id,
            "username": account.username,
            "account_type": account.account_type,
            "business_name": account.business_name,
            "profile_image": f"{call.base_url}/pinterest/avatars/{account.username}.svg",
            "website_url": "",
            "about": "",
            "board_count": 0,
            "pin_count": 0,
            "follower_count": 0,
            "following_count": 0,
            "monthly_views": 0,
        },
    )
