"""A post as X's API shows it, in both generations of names."""

import html
from datetime import UTC
from typing import Any

from socialpub.sandbox.x.models import XPost
from socialpub.sandbox.x.query import NEW_POST_FIELDS, OLD_POST_FIELDS, REFERENCES, expansions, field_list
from socialpub.sandbox.x.switches import XSwitches
from socialpub.sandbox.x.text import weighted_length

SHORT_TEXT = 276


def post_fields(x: XSwitches, query: dict[str, str]) -> set[str]:
    """The fields asked for; what is expanded is shown as well."""
    expanded = expansions(x, query)
    if "post.fields" in query:
        return expanded | field_list(x, query, "post.fields", NEW_POST_FIELDS, NEW_POST_FIELDS)
    return expanded | field_list(x, query, "tweet.fields", OLD_POST_FIELDS, OLD_POST_FIELDS)


def referenced_ids(post: XPost) -> dict[str, str]:
    """By kind of reference."""
    quoted = post.options.get("quote_tweet_id")
    found = {"replied_to": post.in_reply_to, "quoted": str(quoted) if quoted else None}
    return {kind: referenced for kind, referenced in found.items() if referenced}


def post_json(x: XSwitches, post: XPost, fields: set[str]) -> dict[str, Any]:
    new = x.dialect == "new"
    text, long = post.shown_text, weighted_length(post.text) > 280
    if long:
        text = text[:SHORT_TEXT] + "…"
    shown: dict[str, Any] = {
        "id": post.id,
        "text": escaped(x, text),
        "edit_history_post_ids" if new else "edit_history_tweet_ids": [post.id],
    }
    if "created_at" in fields:
        shown["created_at"] = post.created_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    if "author_id" in fields:
        shown["author_id"] = post.account_id
    if "conversation_id" in fields:
        shown["conversation_id"] = post.conversation_id or post.in_reply_to or post.id
    if "reply_settings" in fields:
        shown["reply_settings"] = post.reply_settings
    if "paid_partnership" in fields:
        shown["paid_partnership"] = post.paid_partnership
    if "attachments" in fields and post.media:
        shown["attachments"] = {"media_keys": [item.key for item in post.media]}
    if "entities" in fields and (entities := _within(post.entities, len(text))):
        shown["entities"] = entities
    if fields & {"note_post", "note_tweet"} and long:
        note = {"text": escaped(x, post.shown_text)}
        shown["note_post" if new else "note_tweet"] = note | ({"entities": post.entities} if post.entities else {})
    if fields & REFERENCES and (references := referenced_ids(post)):
        listed = [{"type": kind, "id": referenced} for kind, referenced in references.items()]
        shown["referenced_posts" if new else "referenced_tweets"] = listed
    return {name: value for name, value in shown.items() if name not in x.leaves_out}


def _within(entities: dict[str, list[dict[str, Any]]], length: int) -> dict[str, list[dict[str, Any]]]:
    kept = {kind: [one for one in found if one["end"] <= length] for kind, found in entities.items()}
    return {kind: found for kind, found in kept.items() if found}


def escaped(x: XSwitches, text: str) -> str:
    return html.escape(text, quote=False) if x.escapes_html else text
