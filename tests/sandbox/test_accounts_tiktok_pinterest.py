"""TikTok and Pinterest, as far as importing a profile needs them."""

from starlette.testclient import TestClient

from socialpub.sandbox import World

APP = {"client_key": "app", "client_secret": "secret"}


def test_tiktok_says_who_the_user_is(world: World, web: TestClient) -> None:
    granted = world.tiktok.grant("demo")
    header = {"authorization": f"Bearer {granted['accessToken']}"}
    answer = web.get("/tiktok/v2/user/info/", params={"fields": "open_id,display_name"}, headers=header).json()
    assert answer["error"]["code"] == "ok"
    assert answer["data"]["user"] == {"open_id": "7f0c1e52-demo-4a11-9b7e-000000000001", "display_name": "Demo"}
    wanting = web.get("/tiktok/v2/user/info/", params={"fields": "username"}, headers=header)
    assert wanting.json()["error"]["code"] == "scope_permission_missed"
    assert web.get("/tiktok/v2/user/info/", headers=header).json()["error"]["code"] == "invalid_params"
    assert web.get("/tiktok/v2/user/info/?fields=open_id").json()["error"]["code"] == "access_token_invalid"


def test_tiktok_rotates_and_revokes(world: World, web: TestClient) -> None:
    granted = world.tiktok.grant("demo")
    form = APP | {"grant_type": "refresh_token", "refresh_token": granted["refreshToken"]}
    new = web.post("/tiktok/v2/oauth/token/", data=form).json()
    assert (new["expires_in"], new["refresh_expires_in"], new["token_type"]) == (86400, 31536000, "Bearer")
    assert web.post("/tiktok/v2/oauth/token/", data=form).json()["error"] == "invalid_grant"
    assert web.post("/tiktok/v2/oauth/token/", json=form).json()["error"] == "invalid_request"
    no_app = {"grant_type": "refresh_token", "refresh_token": new["refresh_token"]}
    assert web.post("/tiktok/v2/oauth/token/", data=no_app).json()["error"] == "invalid_client"
    assert web.post("/tiktok/v2/oauth/revoke/", data=APP | {"token": new["access_token"]}).json() == {}
    header = {"authorization": f"Bearer {new['access_token']}"}
    assert web.get("/tiktok/v2/user/info/?fields=open_id", headers=header).status_code == 401


def test_tiktok_can_be_told_to_keep_its_refresh_token(world: World, web: TestClient) -> None:
    world.tiktok.rotates = False
    granted = world.tiktok.grant("demo")
    form = APP | {"grant_type": "refresh_token", "refresh_token": granted["refreshToken"]}
    for _ in range(2):
        assert web.post("/tiktok/v2/oauth/token/", data=form).json()["refresh_token"] == granted["refreshToken"]


def test_pinterest_says_whose_account_it_is(world: World, web: TestClient) -> None:
    granted = world.pinterest.grant("demo")
    answer = web.get("/pinterest/v5/user_account", headers={"authorization": f"Bearer {granted['accessToken']}"})
    assert (answer.json()["username"], answer.json()["account_type"]) == ("demo", "BUSINESS")
    assert answer.headers["x-pinterest-rid"]
    assert web.get("/pinterest/v5/user_account").json()["code"] == 2
    world.pinterest.unapproved = True
    assert web.get("/pinterest/v5/user_account").json()["code"] == 3


def test_pinterest_rotates_and_does_not_revoke(world: World, web: TestClient) -> None:
    granted = world.pinterest.grant("demo")
    form = {"grant_type": "refresh_token", "refresh_token": granted["refreshToken"]}
    new = web.post("/pinterest/v5/oauth/token", data=form, auth=("app", "secret")).json()
    assert (new["expires_in"], new["refresh_token_expires_in"]) == (2592000, 5184000)
    assert web.post("/pinterest/v5/oauth/token", data=form, auth=("app", "secret")).status_code == 401
    assert web.post("/pinterest/v5/oauth/token", data=form).json()["code"] == 2
    query = web.post("/pinterest/v5/oauth/token", params=form, auth=("app", "secret"))
    assert "Missing request body" in query.json()["message"]
    revoked = web.post("/pinterest/v5/oauth/token/revoke", data={"token": new["access_token"]}, auth=("app", "secret"))
    assert (revoked.status_code, revoked.json()["code"]) == (403, 29)


def test_their_faults_speak_their_own_language(world: World, web: TestClient) -> None:
    world.tiktok.next("user_info").rate_limited(5)
    assert web.get("/tiktok/v2/user/info/").json()["error"]["code"] == "rate_limit_exceeded"
    world.pinterest.next("user_account").rate_limited(67150)
    limited = web.get("/pinterest/v5/user_account")
    assert (limited.json()["code"], limited.headers["x-ratelimit-reset"]) == (8, "67150")
    world.pinterest.next("user_account").fails_with(500)
    assert set(web.get("/pinterest/v5/user_account").json()) == {"code", "message"}
