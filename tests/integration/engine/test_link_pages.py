"""Pages and images behind the links of a post: only public hosts, within limits, and removed with the delivery."""

import asyncio
import gzip
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from socialpub.core.settings.schema import MediaSection
from socialpub.providers import ip_addresses
from socialpub.providers.base import ImageLimits, NotFetched
from socialpub.publishing.media import link_pages, renditions
from socialpub.publishing.media.link_pages import LinkFetcher
from socialpub.runtime import Runtime
from tests.samples import media as samples
from tests.support.file_host import FileHost, redirect, response
from tests.support.hand_clock import HandClock

LIMITS = ImageLimits(("image/jpeg",), 1_000_000, max_width=160)
HTML = "Content-Type: text/html; charset=Shift_JIS"


@pytest.fixture
def appliance_options(network: Any) -> dict[str, Any]:
    """The owner allows media files of every host, which concerns no page."""
    return {"providers": {"x": network}, "media": MediaSection(import_from=("127.0.0.0/8", "localhost"))}


@pytest.fixture(autouse=True)
def _public_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only this address of the test machine counts as public."""
    monkeypatch.setattr(ip_addresses, "is_public", lambda address: str(address) == "127.0.0.1")


@pytest.fixture
def links(rt: Runtime) -> LinkFetcher:
    return LinkFetcher(rt, "d1")


@contextmanager
def serving(**responses: Any) -> Iterator[FileHost]:
    """Run a host on a loop of its own: the fetcher waits on the thread of the delivery."""
    host, loop = FileHost({f"/{name}": played for name, played in responses.items()}), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(host.start(), loop).result()
    try:
        yield host
    finally:
        asyncio.run_coroutine_threadsafe(host.stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def failure(fetch: Callable[[], object]) -> str:
    with pytest.raises(NotFetched) as failed:
        fetch()
    return str(failed.value)


def test_a_page_is_cut_at_the_limit_and_knows_where_it_is(links: LinkFetcher) -> None:
    with serving(a=redirect("/b/c?d=1"), **{"b/c": response(b"x" * 5000, HTML)}) as host:
        found = links.fetch(host.url("/a"), 1000)
    assert (found.body, found.content_type, found.charset) == (b"x" * 1000, "text/html", "shift_jis")
    assert found.url == host.url("/b/c?d=1")


def test_a_private_host_is_refused_before_any_request(rt: Runtime) -> None:
    with serving(a=redirect("http://127.0.0.3:1/")) as host:
        message = failure(lambda: LinkFetcher(rt, "d1").fetch(host.url("/a"), 1000))
        assert message == "The page leads to 127.0.0.3, which does not exist or is not a public host."
        for private in ("127.0.0.2", "2130706434", "[::ffff:127.0.0.2]"):
            url = f"http://{private}:{host.port}/a"
            assert "not a public host" in failure(partial(LinkFetcher(rt, "d1").fetch_image, url, LIMITS))
        assert host.paths == ["/a"]


@pytest.mark.parametrize(
    "url", ["ftp://example.com/a", "https://user:hush@127.0.0.1/", "http://[bad", "https://\u2024/"]
)
def test_an_odd_url_is_a_note_and_never_an_error(links: LinkFetcher, url: str) -> None:
    assert failure(lambda: links.fetch(url, 1000)).startswith("The page ")
    assert "hush" not in failure(lambda: links.fetch_image(url, LIMITS))


def test_a_page_and_its_image_share_ten_seconds(clock: HandClock, links: LinkFetcher) -> None:
    with serving(a=response(b"page", HTML)) as host:
        assert links.fetch(host.url("/a"), 1000).body == b"page"
        clock.forward(link_pages.SECONDS)
        assert failure(lambda: links.fetch_image(host.url("/a"), LIMITS)) == (
            "The image did not arrive within 10 seconds."
        )


def test_an_image_is_fitted_and_removed_with_the_delivery(rt: Runtime, links: LinkFetcher, tmp_path: Path) -> None:
    samples.jpeg_grey(tmp_path / "photo.jpg")
    with serving(a=response((tmp_path / "photo.jpg").read_bytes(), "Content-Type: text/plain")) as host:
        found = links.fetch_image(host.url("/a"), LIMITS)
        assert (found.mime_type, found.facts["width"]) == ("image/jpeg", 160)
        assert found.path.stat().st_size == found.size_bytes
        assert links.fetch_image(host.url("/a"), LIMITS) == found
    renditions.forget(rt, "d1")
    assert not found.path.parent.exists()


def test_a_page_is_read_until_its_head_ends(links: LinkFetcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_pages, "HEAD_BYTES", 1000)
    script, title = b"<script>" + b"x" * 500_000 + b"</script>", b"<title>T</title></HEAD>"
    with serving(a=response(script + title + script * 8, HTML), b=response(script * 8, HTML)) as host:
        read = links.fetch(host.url("/a"), 3_000_000).body
        assert title in read
        assert len(read) < 3_000_000
        assert len(links.fetch(host.url("/b"), 3_000_000).body) == 3_000_000


def test_a_compressed_page_is_unpacked_up_to_the_limit(links: LinkFetcher) -> None:
    def packed(body: bytes, encoding: str = "gzip") -> bytes:
        return response(body, HTML, f"Content-Encoding: {encoding}")

    two, bomb = gzip.compress(b"one ") + gzip.compress(b"two"), gzip.compress(b"x" * 50_000_000)
    hosts = {"a": packed(two), "b": packed(bomb), "c": packed(b"plain"), "d": packed(b"", "br"), "e": packed(two[:20])}
    with serving(**hosts) as host:
        assert links.fetch(host.url("/a"), 1000).body == b"one two"
        assert links.fetch(host.url("/b"), 1000).body == b"x" * 1000
        assert failure(lambda: links.fetch(host.url("/c"), 1000)) == "The page could not be decompressed."
        assert "encoding br, which was not requested" in failure(lambda: links.fetch(host.url("/d"), 1000))
        assert links.fetch(host.url("/e"), 1000).body in (b"one ", b"")
        assert "is larger than" in failure(lambda: links.fetch_image(host.url("/b"), LIMITS))


def test_what_is_not_an_image_is_refused(links: LinkFetcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_pages, "IMAGE_BYTES", 1000)
    svg = response(b"<svg xmlns='http://www.w3.org/2000/svg'/>", "Content-Type: image/svg+xml")
    with serving(a=svg, b=response(b"x" * 1001), c=response(status="404 Not Found")) as host:
        assert failure(lambda: links.fetch_image(host.url("/a"), LIMITS)) == "The image of the page cannot be used."
        assert "is larger than 1000 bytes" in failure(lambda: links.fetch_image(host.url("/b"), LIMITS))
        assert failure(lambda: links.fetch_image(host.url("/c"), LIMITS)) == "The image answered 404 Not Found."
