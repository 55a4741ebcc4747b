"""Multipart `POST /posts`: the payload and its files in one request (spec 4.2, contract 5.8)."""

from socialpub.api.endpoint import Answer, Request
from socialpub.keys import Caller
from socialpub.runtime import Runtime


async def create(rt: Runtime, caller: Caller, request: Request) -> Answer:
    """Accept a post together with its files."""
    raise NotImplementedError
