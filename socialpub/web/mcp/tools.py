"""The tools: each runs operations of the API for its caller (contract 10.4.4, 10.4.5)."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import ClientDisconnect, Request

from socialpub.accounts import api_keys, key_limits
from socialpub.accounts.api_keys import Caller
from socialpub.core import logging, units
from socialpub.core.errors import InvalidRequest, SocialpubError
from socialpub.core.post_summary import Result, judge, summarize
from socialpub.providers.registry import OPTIONS, SPECIFIED
from socialpub.runtime import Runtime
from socialpub.web.api import posts, profiles, uploads
from socialpub.web.api.requests import ImportRequest
from socialpub.web.http import problems
from socialpub.web.http.endpoint import EndpointFunction
from socialpub.web.http.shapes import Shape
from socialpub.web.mcp import arguments as shapes
from socialpub.web.mcp.calls import ToolCall
from socialpub.web.mcp.messages import tool_result

log = logging.get_logger(__name__)

Run = Callable[[ToolCall], Awaitable[dict[str, Any]]]

READ = {"readOnlyHint": True}
DESTRUCTIVE = {"destructiveHint": True}


@dataclass(frozen=True)
class Tool:
    """`operation` is the operation of the API whose scope the tool needs."""

    name: str
    description: str
    arguments: type[Shape]
    operation: EndpointFunction
    run: Run
    hints: Mapping[str, bool] = field(default_factory=dict)

    async def call(self, rt: Runtime, caller: Caller, request: Request, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of the call. A refusal is a result as well: its structured content is the problem."""
        code = None
        try:
            self.operation.endpoint.check_scope(caller)
            # Many wrong names or references would block the event loop.
            arguments = self.arguments.for_networks(api_keys.list_extensions(rt, caller))
            _, mistakes = await asyncio.to_thread(arguments.read, given)
            if mistakes:
                raise mistakes.refusal("The arguments")
            structured = await self.run(ToolCall(rt, caller, request, given))
        except ClientDisconnect:
            raise
        except Exception as error:
            problem = problems.find_problem(error, request)
            code, structured = problem.code, problems.as_json(problem, rt.settings.base_url)
        log.info("a tool was called", tool=self.name, key=caller.key_id, code=code)
        return await asyncio.to_thread(tool_result, structured, is_error=code is not None)


# --- posts -----------------------------------------------------------------------------------------------------------

_ONE, _ATTEMPTS = "/posts/{postId}", "/posts/{postId}/attempts"


async def _list_posts(call: ToolCall) -> dict[str, Any]:
    query = {name: call.arguments[name] for name in ("status", "deliveryStatus") if name in call.arguments}
    response = await call.run(posts.index, "GET", "/posts", {**query, "perPage": call.arguments.get("limit", 10)})
    for post in response["data"]:
        post["summary"] = summarize(post)
    return response


async def _get_post(call: ToolCall) -> dict[str, Any]:
    post_id = call.arguments["postId"]
    response = await _wait(call, post_id, call.arguments.get("waitSeconds", 0))
    attempts = await call.run(posts.attempts, "GET", _ATTEMPTS, postId=post_id)
    return {**response, "attempts": attempts["data"], "summary": summarize(response["data"], attempts["data"])}


async def _create_post(call: ToolCall) -> dict[str, Any]:
    body, key = await _new_post(call), call.arguments.get("idempotencyKey")
    response = await call.run(posts.create, "POST", "/posts", {"strict": "true"}, body, key)
    # The outcome of these posts is far away. Only an agent that asks for the wait gets it.
    is_later = response["data"]["status"] == "scheduled" or call.caller.approval
    seconds = call.arguments.get("waitSeconds", 0 if is_later else shapes.DEFAULT_WAIT_SECONDS)
    try:
        return await _with_summary(call, await _wait(call, response["data"]["id"], seconds))
    except SocialpubError:
        # The post is accepted, even if the key was revoked during the wait.
        return {**response, "summary": summarize(response["data"])}


async def _check_post(call: ToolCall) -> dict[str, Any]:
    response = await call.run(posts.validate, "POST", "/posts/validate", body=await _new_post(call))
    for delivery in response["data"]["deliveries"]:
        for problem in delivery["problems"]:
            problem["path"] = call.place(tuple(problem["path"]))
    return response


async def _update_post(call: ToolCall) -> dict[str, Any]:
    response = await call.run(posts.edit, "PATCH", _ONE, body=_content(call), postId=call.arguments["postId"])
    return await _with_summary(call, response)


async def _cancel_post(call: ToolCall) -> dict[str, Any]:
    response = await call.run(posts.cancel, "POST", "/posts/{postId}/cancel", postId=call.arguments["postId"])
    return await _with_summary(call, response)


async def _retry_post(call: ToolCall) -> dict[str, Any]:
    body = {"includeUnknown": call.arguments.get("includeUnknown", False)}
    response = await call.run(posts.retry, "POST", "/posts/{postId}/retry", body=body, postId=call.arguments["postId"])
    return await _with_summary(call, response)


def _content(call: ToolCall) -> dict[str, Any]:
    """Return the fields of the API's request for the text, the time, the media and the options."""
    arguments = call.arguments
    post = {
        name: arguments[key] for name, key in (("body", "text"), ("scheduledAt", "scheduledAt")) if key in arguments
    }
    body = {
        name: arguments[key] for name, key in (("media", "media"), ("providerOptions", "options")) if key in arguments
    }
    return {**({"post": post} if post else {}), **body}


async def _new_post(call: ToolCall) -> dict[str, Any]:
    targets = await call.find_profiles(
        {("profiles", i): reference for i, reference in enumerate(call.arguments["profiles"])}
    )
    body = {"post": {}, **_content(call), "profiles": [profile["id"] for profile in targets]}
    if (parent_id := call.arguments.get("replyTo")) is not None:
        _add_reply(call, body, {profile["provider"] for profile in targets}, parent_id)
    return body


def _add_reply(call: ToolCall, body: dict[str, Any], networks: Set[str], parent_id: str) -> None:
    """Set the option for a reply to our own post at each network that has this option (contract 10.7)."""
    seen = (*SPECIFIED, *api_keys.list_extensions(call.rt, call.caller))
    able = [name for name in seen if any(option.name == shapes.REPLY for option in OPTIONS[name])]
    if not networks & set(able):
        message = f"needs an account of {units.listed(shapes.labels_with_replies(seen), 'or')}"
        raise InvalidRequest.at("replyTo", message=message)
    options = body["providerOptions"] = dict(body.get("providerOptions", {}))
    for name in sorted(networks & set(able)):
        if shapes.REPLY in options.get(name, {}):
            raise InvalidRequest.at(
                "replyTo", message=f"is also in options.{name}.{shapes.REPLY}; use only one of them"
            )
        options[name] = {**options.get(name, {}), shapes.REPLY: parent_id}
        call.places["providerOptions", name, shapes.REPLY] = ("replyTo",)


async def _wait(call: ToolCall, post_id: str, seconds: int) -> dict[str, Any]:
    """Return the post when it is settled or canceled, or as it is after this time."""
    # The rest of the call, such as fetching media, counts as well: the client gives up when the whole call is too long.
    left = min(seconds, int(shapes.MAX_WAIT_SECONDS - call.elapsed_seconds))
    return await call.run(posts.show, "GET", _ONE, {"wait": left} if left > 0 else None, postId=post_id)


async def _with_summary(call: ToolCall, shown: dict[str, Any]) -> dict[str, Any]:
    post, attempts = shown["data"], []
    if judge(post) is Result.PENDING:
        # Only attempts say what a delivery waits for.
        attempts = (await call.run(posts.attempts, "GET", _ATTEMPTS, postId=post["id"]))["data"]
    return {**shown, "summary": summarize(post, attempts)}


# --- accounts and media ----------------------------------------------------------------------------------------------


async def _list_profiles(call: ToolCall) -> dict[str, Any]:
    response = await call.run(profiles.index, "GET", "/profiles")
    caller = call.caller
    left = key_limits.count_left(call.rt, caller)
    values = {"postsPerDay": caller.posts_per_day, "leftToday": left, "approval": caller.approval}
    limits = {name: value for name, value in values.items() if value is not None}
    return {**response, "now": call.rt.stamp(), "limits": limits}


async def _get_choices(call: ToolCall) -> dict[str, Any]:
    [profile] = await call.find_profiles({("profile",): call.arguments["profile"]})
    query = {name: call.arguments[name] for name in ("boardId",) if name in call.arguments}
    return await call.run(profiles.list_choices, "GET", "/profiles/{id}/choices", query, id=profile["id"])


async def _upload_media(call: ToolCall) -> dict[str, Any]:
    return await call.run(uploads.import_url, "POST", "/uploads/import", body={"url": call.arguments["url"]})


# --- the list --------------------------------------------------------------------------------------------------------

TOOLS = {
    tool.name: tool
    for tool in (
        Tool(
            "list_profiles",
            "List the accounts, how to refer to them, the time, and the limits of this key.",
            shapes.NoArguments,
            profiles.index,
            _list_profiles,
            READ,
        ),
        Tool(
            "get_choices",
            "List the options of an account with the values that it can choose now, such as boards and privacy levels.",
            shapes.ChoicesArguments,
            profiles.list_choices,
            _get_choices,
            READ,
        ),
        Tool(
            "get_post",
            "Show a post, the outcome of each delivery, and what each delivery waits for.",
            shapes.OnePost,
            posts.show,
            _get_post,
            READ,
        ),
        Tool("list_posts", "List the newest posts.", shapes.PostList, posts.index, _list_posts, READ),
        Tool(
            "check_post",
            "Check what the networks would refuse. Takes the arguments of create_post and publishes nothing.",
            shapes.PostArguments,
            posts.validate,
            _check_post,
            READ,
        ),
        Tool(
            "create_post",
            "Publish a post now or at a time, and wait for the outcome. If a network would refuse the post, nothing is "
            "published.",
            shapes.PostArguments,
            posts.create,
            _create_post,
            {**DESTRUCTIVE, "openWorldHint": True},
        ),
        Tool(
            "update_post",
            "Change a scheduled post. Omitted arguments do not change.",
            shapes.ChangedPost,
            posts.edit,
            _update_post,
            {**DESTRUCTIVE, "idempotentHint": True},
        ),
        Tool("cancel_post", "Cancel a scheduled post.", shapes.PostId, posts.cancel, _cancel_post, DESTRUCTIVE),
        Tool(
            "retry_post",
            "Publish a post again to the accounts where it failed. The response is a new post.",
            shapes.RetriedPost,
            posts.retry,
            _retry_post,
            DESTRUCTIVE,
        ),
        Tool(
            "upload_media",
            "Fetch an image or a video for several posts. The response has its artifactId.",
            ImportRequest,
            uploads.import_url,
            _upload_media,
            {"destructiveHint": False},
        ),
    )
}


def describe(extensions: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Return the list of tools, the same for every key that sees these networks beyond the specification."""
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "inputSchema": shapes.schema_of(tool.arguments.for_networks(extensions)),
            "annotations": dict(tool.hints),
        }
        for tool in TOOLS.values()
    ]
