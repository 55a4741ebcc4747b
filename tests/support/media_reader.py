"""What a network does with a signed address: it fetches the bytes from the appliance, over its own door."""

from collections.abc import Callable

import anyio
import httpx2

from socialpub.runtime import Runtime
from socialpub.web.http.app import create_app


def reader_of(rt: Runtime, base_url: str) -> Callable[[str], bytes]:
    """The way from the internet to the appliance's own door: what a network fetches by a signed address."""

    def read(url: str) -> bytes:
        assert url.startswith(f"{base_url}/")

        async def get() -> bytes:
            async with httpx2.AsyncClient(transport=httpx2.ASGITransport(create_app(rt))) as client:
                answer = await client.get(url)
                answer.raise_for_status()
                return bytes(answer.content)

        return anyio.run(get)

    return read
