"""Profiles and publishing logs (spec 4.1 and 4.4)."""

from datetime import timedelta

from tests.support.appliance import accept, add_profile

UNKNOWN = "019ac5d2-6b00-7a31-9f0e-4f1f6f3f7a01"


def test_profiles_are_listed_oldest_first_with_the_fields_that_have_a_value(client, rt, clock):
    first = add_profile(rt, "x", "a", picture_url="https://x.example/a.jpg", expires_at="2026-12-01T00:00:00.000Z")
    clock.forward(1)
    second = add_profile(rt, "tiktok", "b", username=None)
    shown = client.send("GET", "/profiles").data
    assert [profile["id"] for profile in shown] == [first, second]
    assert shown[0] == {
        "id": first,
        "name": "x profile",
        "provider": "x",
        "status": "active",
        "username": "demo",
        "pictureUrl": "https://x.example/a.jpg",
        "expiresAt": "2026-12-01T00:00:00.000Z",
        "postsCount": 0,
        "createdAt": "2026-10-12T09:00:00.000Z",
        "updatedAt": "2026-10-12T09:00:00.000Z",
    }
    assert not {"username", "pictureUrl", "expiresAt"} & shown[1].keys()
    assert client.send("GET", f"/profiles/{second}").data == shown[1]


def test_an_unknown_profile_is_a_404(client):
    for profile in (UNKNOWN, "x", "%00"):
        assert client.send("GET", f"/profiles/{profile}").status == 404
        assert client.send("POST", f"/profiles/{profile}/disconnect").status == 404


def test_a_profile_can_be_disconnected_twice(client, profile):
    for _ in range(2):
        reply = client.send("POST", f"/profiles/{profile}/disconnect")
        assert (reply.status, reply.body) == (204, b"")
        assert client.send("GET", f"/profiles/{profile}").data["status"] == "disconnected"


def test_logs_are_read_newest_first_in_pages(client, rt, profile):
    posts = [accept(rt, profile, body=f"n{n}", at=rt.now() + timedelta(hours=1)) for n in range(3)]
    entries = client.send("GET", "/publish/logs").data
    assert [entry["postId"] for entry in entries] == posts[::-1]
    assert entries[0]["type"] == "pending"
    assert entries[0]["postBody"] == "n2"
    assert entries[0]["postScheduledAt"] == "2026-10-12T10:00:00.000Z"
    assert "errorMessage" not in entries[0]
    assert client.send("GET", "/publish/logs?limit=1&offset=1").data == entries[1:2]
    assert client.send("GET", "/publish/logs?limit=0").json() == {"data": []}
    assert client.send("GET", "/publish/logs?offset=9007199254740991").json() == {"data": []}
    for fine in ("limit=100", "limit=&offset=", "limit=null&offset=null"):
        assert len(client.send("GET", f"/publish/logs?{fine}").data) == 3
