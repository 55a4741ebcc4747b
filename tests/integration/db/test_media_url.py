"""Statements know `media_url` in every process and on every connection, from the opening of the database on."""

import json
import threading
from pathlib import Path

from socialpub.db.connection import Tx
from socialpub.db.queries import api_json
from socialpub.publishing.posts.drafts import DraftMedia
from socialpub.runtime import Runtime
from tests.samples import media
from tests.support.appliance import accept, add_profile
from tests.support.sandbox_http import artifact


def test_a_reader_sees_signed_addresses_and_a_write_the_storage_key(rt: Runtime, tmp_path: Path) -> None:
    picture = tmp_path / "a.png"
    media.png(picture)
    post = accept(rt, add_profile(rt), media=(DraftMedia(artifact(rt, picture, "image/png")),))
    storage_key = rt.reader.value("SELECT storage_key FROM artifact")

    def inside(rt: Runtime, tx: Tx) -> bytes | None:
        return api_json.post(tx, post)

    assert url_in(rt.write(inside)) == storage_key
    seen = [url_in(api_json.post(rt.reader, post))]
    thread = threading.Thread(target=lambda: seen.append(url_in(api_json.post(rt.reader, post))))
    thread.start()
    thread.join()
    assert len(seen) == 2
    assert all(f"/storage/media/{storage_key}?expires=" in url for url in seen)


def url_in(shown: bytes | None) -> str:
    assert shown is not None
    return str(json.loads(shown)["media"][0]["url"])
