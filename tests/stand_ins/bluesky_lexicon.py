"""The schemas of the records that a client of this product may write. Fields that a schema does not name are accepted.

Every finding names its field, such as `$.record.embed.images[0].alt`.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from socialpub.sandbox.bluesky.network import HANDLE, POST, POSTGATE, PROFILE, THREADGATE
from tests.stand_ins.graphemes import count_graphemes

DATE_TIME = re.compile(
    r"\d{4}-(?:0[1-9]|1[0-2])-(?:[0-2]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,20})?(?:Z|[+-]\d{2}:\d{2})",
    re.ASCII,
)
LANGUAGE = re.compile(r"(?:[a-z]{2,8}|i)(?:-[A-Za-z0-9]{1,8})*", re.IGNORECASE | re.ASCII)
DID = re.compile(r"did:[a-z]+:[A-Za-z0-9._:%-]*[A-Za-z0-9._-]", re.ASCII)
URI = re.compile(r"[a-z][a-z.-]{0,80}:\S+", re.IGNORECASE)
AT_URI = re.compile(r"at://[A-Za-z0-9._:%-]+(?:/[A-Za-z0-9.-]+(?:/[A-Za-z0-9._:~-]+)?)?", re.ASCII)
CID = re.compile(r"b[a-z2-7]{50,100}")

TEXT_BYTES, TEXT_GRAPHEMES = 3000, 300
TAG_BYTES, TAG_GRAPHEMES = 640, 64
AVATAR_BYTES, THUMB_BYTES, VIDEO_BYTES, CAPTION_BYTES = 1_000_000, 1_000_000, 300_000_000, 20_000

FormCheck = Callable[[str], bool]
FORMS: dict[str, FormCheck] = {
    "datetime": lambda text: DATE_TIME.fullmatch(text) is not None and not text.endswith("-00:00"),
    "language": lambda text: LANGUAGE.fullmatch(text) is not None,
    "did": lambda text: DID.fullmatch(text) is not None,
    "uri": lambda text: URI.fullmatch(text) is not None,
    "at-uri": lambda text: AT_URI.fullmatch(text) is not None,
    "cid": lambda text: CID.fullmatch(text) is not None,
    "handle": lambda text: HANDLE.fullmatch(text) is not None,
}


class InvalidRecord(Exception):
    """A record does not match its schema."""


class Node:
    """A value in a record, with its path."""

    def __init__(self, value: Any, path: str) -> None:
        self.value = value
        self.path = path

    def wrong(self, what: str) -> InvalidRecord:
        return InvalidRecord(f"{what} at {self.path}")

    def member(self, name: str) -> "Node":
        """Return a required field."""
        if name not in self.object():
            raise self.wrong(f'missing required key "{name}"')
        return Node(self.value[name], f"{self.path}.{name}")

    def optional(self, name: str) -> "Node | None":
        return self.member(name) if name in self.object() else None

    def object(self) -> dict[str, Any]:
        if not isinstance(self.value, dict):
            raise self.wrong(f"expected an object (got {_kind(self.value)})")
        return self.value

    def items(self, most: int | None = None) -> "list[Node]":
        if not isinstance(self.value, list):
            raise self.wrong(f"expected an array (got {_kind(self.value)})")
        if most is not None and len(self.value) > most:
            raise self.wrong(f"array too big (maximum {most}, got {len(self.value)})")
        return [Node(item, f"{self.path}[{index}]") for index, item in enumerate(self.value)]

    def text(self, form: str = "", max_bytes: int | None = None, max_graphemes: int | None = None) -> str:
        if not isinstance(self.value, str):
            raise self.wrong(f"expected a string (got {_kind(self.value)})")
        if form and not FORMS[form](self.value):
            raise self.wrong(f"invalid {form}")
        size = len(self.value.encode("utf-8", "surrogatepass"))
        if max_bytes is not None and size > max_bytes:
            raise self.wrong(f"string too big (maximum {max_bytes}, got {size})")
        if max_graphemes is not None and size > max_graphemes:
            graphemes = count_graphemes(self.value)
            if graphemes > max_graphemes:
                raise self.wrong(f"grapheme too big (maximum {max_graphemes}, got {graphemes})")
        return self.value

    def integer(self, least: int) -> int:
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise self.wrong(f"expected an integer (got {_kind(self.value)})")
        if self.value < least:
            raise self.wrong(f"integer too small (minimum {least}, got {self.value})")
        return self.value

    def type(self) -> str:
        return self.member("$type").text()

    def blob(self, accept: str, most: int) -> None:
        if self.object().get("$type") != "blob" or not isinstance(self.value.get("ref"), dict):
            raise self.wrong("expected a blob")
        self.member("ref").member("$link").text("cid")
        mime_type, size = self.member("mimeType").text(), self.member("size").integer(0)
        wanted = accept.removesuffix("*")
        if not (mime_type == accept or (accept.endswith("*") and mime_type.startswith(wanted))):
            raise self.wrong(f'expected a blob of type "{accept}" (got "{mime_type}")')
        if size > most:
            raise self.wrong(f"blob too big (maximum {most}, got {size})")

    def reference(self) -> None:
        """Check `uri` and `cid` of another record."""
        self.member("uri").text("at-uri")
        self.member("cid").text("cid")


def _kind(value: Any) -> str:
    names: Mapping[type, str] = {
        type(None): "null", bool: "boolean", int: "integer", str: "string", list: "array", dict: "object",
    }  # fmt: skip
    return names.get(type(value), "float")


def find_float(value: Any, path: str = "$.record") -> str:
    """Return the path of a number with a fraction, which the data model does not have. Empty: there is none."""
    if isinstance(value, float):
        return path
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return next((found for name, item in members if (found := find_float(item, f"{path}.{name}"))), "")


def check_record(collection: str, record: Any, image_limit: int) -> bool:
    """Return False for a collection without a schema here. Raise InvalidRecord."""
    node = Node(record, "$.record")
    node.object()
    if collection == POST:
        _check_post(node, image_limit)
    elif collection in (THREADGATE, POSTGATE):
        _check_gate(node, "allow" if collection == THREADGATE else "embeddingRules")
    elif collection == PROFILE:
        if name := node.optional("displayName"):
            name.text("", TAG_BYTES, TAG_GRAPHEMES)
        if avatar := node.optional("avatar"):
            avatar.blob("image/*", AVATAR_BYTES)
    else:
        return False
    return True


def _check_gate(node: Node, rules: str) -> None:
    node.member("post").text("at-uri")
    node.member("createdAt").text("datetime")
    if listed := node.optional(rules):
        for rule in listed.items(5):
            rule.type()


def _check_post(node: Node, image_limit: int) -> None:
    node.member("text").text("", TEXT_BYTES, TEXT_GRAPHEMES)
    node.member("createdAt").text("datetime")
    if facets := node.optional("facets"):
        for facet in facets.items():
            _check_facet(facet)
    if reply := node.optional("reply"):
        reply.member("root").reference()
        reply.member("parent").reference()
    if languages := node.optional("langs"):
        for language in languages.items(3):
            language.text("language")
    if (labels := node.optional("labels")) and labels.type() == "com.atproto.label.defs#selfLabels":
        for label in labels.member("values").items(10):
            label.member("val").text("", 128)
    if tags := node.optional("tags"):
        for tag in tags.items(8):
            tag.text("", TAG_BYTES, TAG_GRAPHEMES)
    if embed := node.optional("embed"):
        _check_embed(embed, image_limit)


def _check_facet(facet: Node) -> None:
    """Check the form alone: a server does not compare the offsets with the text."""
    index = facet.member("index")
    index.member("byteStart").integer(0)
    index.member("byteEnd").integer(0)
    for feature in facet.member("features").items():
        match feature.type():
            case "app.bsky.richtext.facet#link":
                feature.member("uri").text("uri")
            case "app.bsky.richtext.facet#mention":
                feature.member("did").text("did")
            case "app.bsky.richtext.facet#tag":
                feature.member("tag").text("", TAG_BYTES, TAG_GRAPHEMES)


def _check_embed(embed: Node, image_limit: int) -> None:
    """An unknown type is accepted. Apps show nothing for it."""
    match embed.type():
        case "app.bsky.embed.images":
            for image in embed.member("images").items(4):
                image.member("image").blob("image/*", image_limit)
                image.member("alt").text()
                _check_aspect_ratio(image)
        case "app.bsky.embed.video":
            embed.member("video").blob("video/mp4", VIDEO_BYTES)
            if alt := embed.optional("alt"):
                alt.text("", 10_000, 1000)
            _check_aspect_ratio(embed)
            if captions := embed.optional("captions"):
                for caption in captions.items(20):
                    caption.member("lang").text("language")
                    caption.member("file").blob("text/vtt", CAPTION_BYTES)
        case "app.bsky.embed.external":
            external = embed.member("external")
            external.member("uri").text("uri")
            external.member("title").text()
            external.member("description").text()
            if thumb := external.optional("thumb"):
                thumb.blob("image/*", THUMB_BYTES)
        case "app.bsky.embed.record":
            embed.member("record").reference()
        case "app.bsky.embed.recordWithMedia":
            embed.member("record").member("record").reference()
            _check_embed(embed.member("media"), image_limit)


def _check_aspect_ratio(node: Node) -> None:
    if ratio := node.optional("aspectRatio"):
        ratio.member("width").integer(1)
        ratio.member("height").integer(1)
