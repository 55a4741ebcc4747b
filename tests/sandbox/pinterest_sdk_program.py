"""Pinterest's own Python library, one call a line; runs in a process of its own (see `pinterest_sdk.py`).

A line is `[name, arguments]` as JSON; the answer is `{"result": …}`, or `{"status": …, "body": …}` for a refusal.
"""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from openapi_generated.pinterest_client.api.boards_api import BoardsApi
from openapi_generated.pinterest_client.api.media_api import MediaApi
from openapi_generated.pinterest_client.api.pins_api import PinsApi
from openapi_generated.pinterest_client.api.user_account_api import UserAccountApi
from openapi_generated.pinterest_client.api_client import ApiClient
from openapi_generated.pinterest_client.exceptions import ApiException
from openapi_generated.pinterest_client.model.media_upload_request import MediaUploadRequest
from openapi_generated.pinterest_client.model.pin_create import PinCreate
from pinterest.client import PinterestSDKClient
from pinterest.organic.boards import Board
from pinterest.utils.base_model import PinterestBaseModel
from pinterest.utils.sdk_exceptions import SdkException


def every_page(page: list[Any], bookmark: Any) -> list[list[Any]]:
    pages = [page]
    while bookmark is not None:
        page, bookmark = bookmark.get_next()
        pages.append(page)
    return pages


def calls(client: PinterestSDKClient) -> dict[str, Callable[..., Any]]:
    return {
        "account": UserAccountApi(client).user_account_get,
        "boards": lambda **how: every_page(*Board.get_all(client=client, **how)),
        "board": BoardsApi(client).boards_get,
        "create_board": lambda **how: Board.create(client=client, **how),
        "sections": lambda board_id: every_page(*Board(board_id, client=client).list_sections()),
        "create_section": lambda board_id, name: Board(board_id, client=client).create_section(name),
        "create_pin": lambda **how: PinsApi(client).pins_create(pin_create=PinCreate(**how)),
        "pins": lambda board_id, **how: every_page(*Board(board_id, client=client).list_pins(**how)),
        "register": lambda media_type: MediaApi(client).media_create(MediaUploadRequest(media_type=media_type)),
        "media": MediaApi(client).media_get,
    }


def plain(value: Any) -> Any:
    """What the library made of an answer, as JSON data with Pinterest's own names."""
    if isinstance(value, PinterestBaseModel):
        names = [name for name, kind in vars(type(value)).items() if isinstance(kind, property)]
        shown = {name: plain(getattr(value, name)) for name in names}
        # Where an instant should be the library shows the class of instants.
        return {name: one for name, one in shown.items() if not isinstance(one, type)}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value if isinstance(value, type) else ApiClient.sanitize_for_serialization(value)


def answer(client: PinterestSDKClient, line: str) -> dict[str, Any]:
    name, arguments = json.loads(line)
    try:
        return {"result": plain(calls(client)[name](**arguments))}
    except (ApiException, SdkException) as error:
        return {"status": error.status, "body": error.body}


def main() -> None:
    if "PINTEREST_ACCESS_TOKEN" in os.environ:
        client = PinterestSDKClient.create_default_client()
    else:
        client = PinterestSDKClient.create_client_with_refresh_token(
            os.environ["PINTEREST_REFRESH_ACCESS_TOKEN"],
            os.environ["PINTEREST_APP_ID"],
            os.environ["PINTEREST_APP_SECRET"],
        )
    for line in sys.stdin:
        print(json.dumps(answer(client, line)), flush=True)


main()
