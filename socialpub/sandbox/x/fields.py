"""Names that X's documents list: the fields of users and posts in both generations, and the scopes."""

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
SCOPES = frozenset({
    "block.read", "block.write", "bookmark.read", "bookmark.write", "dm.read", "dm.write", "follows.read",
    "follows.write", "like.read", "like.write", "list.read", "list.write", "media.write", "mute.read", "mute.write",
    "offline.access", "space.read", "timeline.read", "tweet.moderate.write", "tweet.read", "tweet.write",
    "users.email", "users.read",
})  # fmt: skip
