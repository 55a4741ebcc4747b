"""The public pages of Bluesky. They show records as an app does."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import quote, urlsplit

from socialpub.sandbox.bluesky.api import BlueskySandbox
from socialpub.sandbox.bluesky.network import POST, THREADGATE, BlueskyRecord, link_of
from socialpub.sandbox.feeds import LinkView, MediaView, NetworkPages, PostView

RULES = {"mentionRule": "mentioned accounts", "followerRule": "followers", "followingRule": "followed accounts"}
LABELS = {
    "porn": "Adult content",
    "sexual": "Sexually suggestive",
    "nudity": "Nudity",
    "graphic-media": "Graphic media",
}


class BlueskyPages(NetworkPages[BlueskySandbox]):
    account_path, post_path = "/profile/{username}", "/profile/{username}/post/{id}"
    publishing = "put_record"
    refusals: ClassVar = {"BlobNotFound": "is refused: its image is gone"}

    def posts(self, network: BlueskySandbox) -> Sequence[BlueskyRecord]:
        """Order them by their own dates: a post with an old date is far below."""
        visible = [post for post in network.posts if _is_visible(network, post)]
        return sorted(visible, key=lambda post: post.sorted_at)

    def find(self, network: BlueskySandbox, path: Mapping[str, str]) -> BlueskyRecord | None:
        account = network.account_named(path["username"])
        post = network.records.get(f"at://{account.did}/{POST}/{path['id']}") if account else None
        return post if post and _is_visible(network, post) else None

    def view(self, network: BlueskySandbox, post: BlueskyRecord) -> PostView:
        account, value = network.accounts[post.did], post.value
        embed = value.get("embed", {})
        embed = embed.get("media", embed)
        media = [_media(item["image"], item["alt"]) for item in embed.get("images", ())]
        if "video" in embed and account.email_confirmed:
            media = [_media(embed["video"], embed.get("alt", ""))]
        parent = value.get("reply", {}).get("parent", {}).get("uri", "")
        return PostView(
            _path(post.uri),
            account,
            account.name,
            post.sorted_at,
            linked(post.text, value.get("facets", [])),
            media,
            card=_card(embed["external"]) if "external" in embed else None,
            labels=_labels(network, post),
            parent=_path(parent) if parent else "",
        )


def _is_visible(bluesky: BlueskySandbox, post: BlueskyRecord) -> bool:
    return not post.taken_down and bluesky.accounts[post.did].status == "active"


def _path(uri: str) -> str:
    did, _, rkey = uri.removeprefix("at://").split("/")
    return f"profile/{did}/post/{rkey}"


def _media(blob: dict[str, Any], alt: str) -> MediaView:
    return MediaView(link_of(blob), blob["mimeType"], blob["size"], alt)


def linked(text: str, facets: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return the pieces of the text with their links, as an app shows them. Offsets count bytes. A facet that does not
    fit the text is not shown."""
    data, position, pieces = text.encode("utf-8", "surrogatepass"), 0, []
    for facet in sorted(facets, key=lambda facet: int(facet["index"]["byteStart"])):
        begin, end = facet["index"]["byteStart"], facet["index"]["byteEnd"]
        try:
            before, marked = data[position:begin].decode(), data[begin:end].decode()
        except UnicodeDecodeError:
            continue
        if position <= begin < end <= len(data):
            pieces += [(before, ""), (marked, _href(facet["features"]))]
            position = end
    return [*pieces, (data[position:].decode("utf-8", "replace"), "")]


def _href(features: list[dict[str, Any]]) -> str:
    feature = features[0] if features else {}
    if "did" in feature:
        return f"profile/{quote(feature['did'], safe=':')}"
    return _http_url(feature.get("uri"))


def _http_url(url: object) -> str:
    return url if isinstance(url, str) and urlsplit(url).scheme in ("http", "https") else ""


def _card(external: dict[str, Any]) -> LinkView:
    image = link_of(external["thumb"]) if "thumb" in external else ""
    return LinkView(_http_url(external["uri"]), external["title"], external["description"], image)


def _labels(bluesky: BlueskySandbox, post: BlueskyRecord) -> list[str]:
    values = post.value.get("labels", {}).get("values", ())
    labels = [LABELS.get(label["val"], label["val"]) for label in values]
    gate = bluesky.find_record(post.uri.replace(POST, THREADGATE))
    if gate is not None and "allow" in gate.value:
        rules = [RULES.get(str(rule["$type"]).rpartition("#")[2], "a list") for rule in gate.value["allow"]]
        labels.append(f"Only {' and '.join(rules)} can reply" if rules else "Replies are off")
    return [*labels, *post.value.get("langs", ())]
