"""Query parameters of X's API: one of the two generations of names, never a mixture."""

from socialpub.sandbox.request import SandboxRequest
from socialpub.sandbox.x import problems
from socialpub.sandbox.x.switches import XSwitches

SHARED = frozenset({"expansions", "user.fields", "media.fields", "poll.fields", "place.fields"})
NEW_USER_FIELDS = frozenset({
    "confirmed_email", "connection_status", "created_at", "description", "entities", "id", "is_identity_verified",
    "location", "name", "parody", "profile_banner_url", "profile_image_url", "protected", "public_metrics",
    "receives_your_dm", "subscribes_to_you", "subscription", "subscription_type", "url", "username", "verified",
    "verified_followers_count", "verified_type", "withheld",
})  # fmt: skip
OLD_USER_FIELDS = frozenset({
    "affiliation", "confirmed_email", "connection_status", "created_at", "description", "entities", "id",
    "is_identity_verified", "location", "most_recent_tweet_id", "name", "parody", "pinned_tweet_id",
    "profile_banner_url", "profile_image_url", "protected", "public_metrics", "receives_your_dm", "subscription",
    "subscription_type", "url", "username", "verified", "verified_followers_count", "verified_type", "withheld",
})  # fmt: skip
NEW_POST_FIELDS = frozenset({
    "article", "article_title", "attachments", "card_uri", "community_id", "context_annotations", "conversation_id",
    "created_at", "display_text_range", "edit_controls", "entities", "geo", "id", "lang", "matched_media_notes",
    "media_metadata", "non_public_metrics", "note_post", "note_request_suggestions", "organic_metrics",
    "paid_partnership", "possibly_sensitive", "promoted_metrics", "public_metrics", "reply_settings", "scopes",
    "source", "suggested_source_links", "suggested_source_links_with_counts", "text", "withheld",
})  # fmt: skip
OLD_POST_FIELDS = frozenset({
    "article", "attachments", "author_id", "card_uri", "community_id", "context_annotations", "conversation_id",
    "created_at", "display_text_range", "edit_controls", "edit_history_tweet_ids", "entities", "geo", "id",
    "in_reply_to_user_id", "lang", "matched_media_notes", "media_metadata", "non_public_metrics",
    "note_request_suggestions", "note_tweet", "organic_metrics", "paid_partnership", "possibly_sensitive",
    "promoted_metrics", "public_metrics", "referenced_tweets", "reply_settings", "scopes", "source",
    "suggested_source_links", "suggested_source_links_with_counts", "text", "withheld",
})  # fmt: skip
NEW_EXPANSIONS = frozenset({
    "article.cover_media", "article.media_entities", "attachments.media_keys", "attachments.media_source_tweet",
    "attachments.poll_ids", "author_id", "edit_history_post_ids", "entities.mentions.username", "geo.place_id",
    "in_reply_to_user_id", "referenced_posts", "username",
})  # fmt: skip
OLD_EXPANSIONS = frozenset({
    "article.cover_media", "article.media_entities", "attachments.media_keys", "attachments.media_source_tweet",
    "attachments.poll_ids", "author_id", "edit_history_tweet_ids", "entities.mentions.username",
    "entities.note.mentions.username", "geo.place_id", "in_reply_to_user_id", "referenced_tweets.id",
    "referenced_tweets.id.attachments.media_keys", "referenced_tweets.id.author_id",
})  # fmt: skip
REFERENCES = frozenset({"referenced_posts", "referenced_tweets", "referenced_tweets.id"})
"""Asks what a post replies to and quotes: in the old names a field or an expansion, in the new ones an expansion."""
SCOPES = frozenset({
    "block.read", "block.write", "bookmark.read", "bookmark.write", "dm.read", "dm.write", "follows.read",
    "follows.write", "like.read", "like.write", "list.read", "list.write", "media.write", "mute.read", "mute.write",
    "offline.access", "space.read", "timeline.read", "tweet.moderate.write", "tweet.read", "tweet.write",
    "users.email", "users.read",
})  # fmt: skip


def checked_query(x: XSwitches, request: SandboxRequest, names: set[str]) -> dict[str, str]:
    """The query, when every parameter is one of `names` and none comes from the other generation."""
    query = request.query()
    if x.one_dialect:
        names = names - {"tweet.fields" if x.dialect == "new" else "post.fields"}
    for name in query:
        if name not in names:
            raise problems.invalid(
                x, f"The query parameter [{name}] is not one of {sorted(names)}", **{name: query[name]}
            )
    if "tweet.fields" in query and "post.fields" in query:
        raise problems.invalid(x, "tweet.fields and post.fields belong to different documents", **query)
    return query


def expansions(x: XSwitches, query: dict[str, str]) -> set[str]:
    """The expansions asked for, of the generation that the fields are asked in."""
    generations = {"new": NEW_EXPANSIONS, "old": OLD_EXPANSIONS}
    asked_in = "new" if "post.fields" in query else "old" if "tweet.fields" in query else None
    if asked_in is None and x.one_dialect:
        asked_in = x.dialect
    known = [generations[asked_in]] if asked_in else [*generations.values()]
    return field_list(x, query, "expansions", known[0], known[-1])


def field_list(x: XSwitches, query: dict[str, str], name: str, new: frozenset[str], old: frozenset[str]) -> set[str]:
    """The members of a comma list, when one generation knows them all."""
    if name not in query:
        return set()
    fields = query[name].split(",")
    if len(set(fields)) != len(fields) or not (new.issuperset(fields) or old.issuperset(fields)):
        raise problems.invalid(
            x, f"The `{name}` query parameter value [{query[name]}] is not one of {sorted(new)}", **{name: query[name]}
        )
    return set(fields)
