"""The operations manual: one Markdown file per topic, which the appliance serves, prints and links to.

`index.md` lists the topics. A place is a topic and perhaps the anchor of a heading: `backups#restore`.
"""

import re
from functools import cache
from importlib import resources
from typing import NamedTuple

FOLDER = resources.files("socialpub") / "manual"
INDEX = "index"
IMAGES = "images"

_ENTRY = re.compile(r"^- \[([^]]+)\]\(([a-z]+)\.md\): (.+)$", re.MULTILINE)
_FINDING = re.compile(r"^\| `([a-z_. ]+)` \| \[[^]]+\]\(([a-z]+)\.md(#[a-z-]+)?\) \|$", re.MULTILINE)
_MARK = re.compile(r"^<!-- .* -->\n\n?", re.MULTILINE)


class ManualTopic(NamedTuple):
    name: str
    title: str
    summary: str


@cache
def list_topics() -> dict[str, ManualTopic]:
    """Return the topics by their names, in the order of the index."""
    return {name: ManualTopic(name, title, summary) for title, name, summary in _ENTRY.findall(read_topic(INDEX))}


def read_topic(name: str) -> str:
    """Return the Markdown of a topic or of the index."""
    return _MARK.sub("", (FOLDER / f"{name}.md").read_text("utf-8"))


@cache
def finding_places() -> dict[str, str]:
    """Return the place that explains each subject of `doctor`, as the topic `monitoring` lists them."""
    return {subject: topic + anchor for subject, topic, anchor in _FINDING.findall(read_topic("monitoring"))}


def read_image(name: str) -> bytes | None:
    """Return an image of the manual, or None for an unknown name."""
    return next((file.read_bytes() for file in (FOLDER / IMAGES).iterdir() if file.name == name), None)


def anchor(heading: str) -> str:
    """Return the anchor of a heading, as code hosts make it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def url(base_url: str, place: str) -> str:
    """Return the URL of a place in the manual that this appliance serves."""
    return f"{base_url}/manual/{place}"
