"""Rows that a story begins with, made without the rooms that usually make them."""

from typing import Any

import orjson

from socialpub.core.clock import new_id
from socialpub.db.connection import Database
from socialpub.db.queries import api_json
from socialpub.db.tables import artifact_rows
from socialpub.runtime import Runtime
from tests.support.select import select_all


def artifact(rt: Runtime, status: str = "verified", **columns: Any) -> str:
    """An artifact in this status; its id. The bytes are imagined."""
    artifact_id = new_id(rt.now())

    def insert(tx: Database) -> None:
        values: dict[str, Any] = {
            "id": artifact_id,
            "status": status,
            "file_name": "a.png",
            "declared_type": "image/png",
            "declared_bytes": 3,
            "created_at": tx.stamp,
        }
        if status == "verified":
            values |= {
                "kind": "image",
                "mime_type": "image/png",
                "size_bytes": 3,
                "storage_key": f"ab/cd/{artifact_id}-1.png",
                "facts": "{}",
                "verified_at": tx.stamp,
            }
        artifact_rows.insert(tx, **{**values, **columns})

    rt.db.write(insert)
    return artifact_id


def post_ids(rt: Runtime) -> list[str]:
    return [row[0] for row in select_all(rt.db, "SELECT id FROM post ORDER BY id")]


def read_post(rt: Runtime, post_id: str) -> dict[str, Any]:
    """The post as the API shows it."""
    found = api_json.post(rt.db, post_id)
    assert found is not None
    post: dict[str, Any] = orjson.loads(found)
    return post
