"""The bare server that the appliance is compared with, as a process of its own: `python -m tests.bench.bare PORT DIR`.

It answers `GET` with bytes that it received before, and writes the body of a `PUT` to a file, which it flushes. Any
Starlette application does at least that. Server and settings are those of the appliance's web process.
"""

import asyncio
import itertools
import os
import sys
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from socialpub.cli.run import end_with_parent


def create_app(folder: Path) -> Starlette:
    answers: dict[str, bytes] = {}
    numbers = itertools.count()

    async def post(_request: Request) -> Response:
        return Response(answers["post"], media_type="application/json")

    async def posts(_request: Request) -> Response:
        return Response(answers["posts"], media_type="application/json")

    async def learn(request: Request) -> Response:
        answers[request.path_params["name"]] = await request.body()
        return Response(status_code=204)

    async def put(scope: Scope, receive: Receive, send: Send) -> None:
        path = folder / f"put-{next(numbers)}"
        with path.open("wb", buffering=0) as file:
            more = True
            while more:
                message = await receive()
                file.write(message.get("body", b""))
                more = message.get("more_body", False)
            await asyncio.to_thread(os.fsync, file.fileno())
        await Response(status_code=200)(scope, receive, send)

    class Put:
        """A class instance, so that Starlette hands over the connection as it is."""

        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            await put(scope, receive, send)

    return Starlette(
        routes=[
            Route("/api/v1/posts/{postId}", post),
            Route("/api/v1/posts", posts),
            Route("/learn/{name}", learn, methods=["POST"]),
            Route("/put", Put(), methods=["PUT"]),
        ]
    )


if __name__ == "__main__":
    end_with_parent(5.0)
    uvicorn.run(
        create_app(Path(sys.argv[2])),
        host="127.0.0.1",
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=2048,
    )
