"""`GET /user_account`."""

from socialpub.sandbox.pinterest import replies
from socialpub.sandbox.pinterest.access import PinterestCaller, api_call
from socialpub.sandbox.pinterest.network import PinterestSandbox
from socialpub.sandbox.reply import Reply
from socialpub.sandbox.request import SandboxRequest


@api_call("org_read", "user_accounts:read")
def user_account(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    account = caller.account
    boards = [one for one in pinterest.boards.values() if one.owner_id == account.id and one.sandbox == caller.sandbox]
    return replies.ok(
        pinterest,
        200,
        {
            "id": account.id,
            "username": account.username,
            "account_type": account.account_type,
            "business_name": account.business_name if account.is_business else None,
            "profile_image": f"{request.base_url}/pinterest/avatars/{account.picture or account.username}.png",
            "website_url": "",
            "about": "",
            "board_count": len(boards),
            "pin_count": sum(len(pinterest.pins_on(board)) for board in boards),
            "follower_count": 0,
            "following_count": 0,
            "monthly_views": 0,
        },
    )
