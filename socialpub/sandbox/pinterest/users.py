"""`GET /user_account`."""

from typing import TYPE_CHECKING

from socialpub.sandbox.call import Answer, Call
from socialpub.sandbox.pinterest.access import Caller, api_call

if TYPE_CHECKING:
    from socialpub.sandbox.pinterest.network import Pinterest


@api_call("org_read", "user_accounts:read")
def user_account(pinterest: "Pinterest", call: Call, caller: Caller) -> Answer:
    account = caller.account
    boards = [one for one in pinterest.boards.values() if one.owner_id == account.id and one.sandbox == caller.sandbox]
    return pinterest.answer(
        200,
        {
            "id": account.id,
            "username": account.username,
            "account_type": account.account_type,
            "business_name": account.business_name if account.is_business else None,
            "profile_image": f"{call.base_url}/pinterest/avatars/{account.username}.svg",
            "website_url": "",
            "about": "",
            "board_count": len(boards),
            "pin_count": sum(len(pinterest.pins_on(board)) for board in boards),
            "follower_count": 0,
            "following_count": 0,
            "monthly_views": 0,
        },
    )
