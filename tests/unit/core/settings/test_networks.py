"""Where bytes may be sent: to the hosts of the network, and to nobody who only looks like them."""


def test_upload_hosts_of_the_networks_own_are_allowed_and_their_look_alikes_are_not(configured):
    tiktok, pinterest = configured().providers.tiktok, configured().providers.pinterest
    for region in ("open-upload", "open-upload-va", "open-upload-sg", "open-upload-i18n", "open-upload.us"):
        assert tiktok.allows_upload_host(f"{region}.tiktokapis.com")
    assert tiktok.allows_upload_host("UPLOAD.us.tiktokapis.com")
    assert pinterest.allows_upload_host("pinterest-media-upload.s3-accelerate.amazonaws.com")
    for host in (
        "tiktokapis.com",
        "upload..tiktokapis.com",
        ".tiktokapis.com",
        "evil.com",
        "open-upload.tiktokapis.com.evil.com",
        "open-upload.xtiktokapis.com",
        "tiktokapis.com.evil.com",
        "",
    ):
        assert not tiktok.allows_upload_host(host), host
    assert not pinterest.allows_upload_host("amazonaws.com")
    assert not pinterest.allows_upload_host("x.notamazonaws.com")


def test_the_host_of_an_api_url_pointed_elsewhere_is_allowed_for_this_network_only(configured):
    s = configured('[providers.tiktok]\napi_url = "http://127.0.0.1:9000/tiktok"')
    assert s.providers.tiktok.allows_upload_host("127.0.0.1")
    assert not s.providers.pinterest.allows_upload_host("127.0.0.1")
    assert not configured().providers.tiktok.allows_upload_host("127.0.0.1")


def test_an_upload_host_is_a_name_and_nothing_more(mistakes):
    for wrong in ("https://a.example", "a.example/path", "a.example:443", "*", "a.*", "a*.example", ""):
        assert "providers.x.upload_hosts" in mistakes(f'[providers.x]\nupload_hosts = ["{wrong}"]')


def test_the_scopes_of_tiktok_are_known_ones_and_let_something_be_posted(configured, mistakes):
    assert configured().providers.tiktok.scopes == ("user.info.basic", "video.publish", "video.upload")
    given = '[providers.tiktok]\nscopes = ["user.info.basic", "video.upload", "video.list", "video.upload"]'
    assert configured(given).providers.tiktok.scopes == ("user.info.basic", "video.upload", "video.list")
    for wrong, says in (
        ('["user.info.basic", "video.publsh"]', "'video.publsh' is not one of user.info.basic"),
        ('["video.publish", "video.upload"]', "must hold user.info.basic"),
        ('["user.info.basic", "video.list"]', "must hold video.publish (direct posts) or video.upload (drafts)"),
        ("[]", "must hold user.info.basic"),
        ('"user.info.basic,video.upload"', "providers.tiktok.scopes"),
    ):
        message = mistakes(f"[providers.tiktok]\nscopes = {wrong}")
        assert "providers.tiktok.scopes" in message
        assert says in message


def test_links_to_posts_lead_to_the_site_that_has_the_consent_page(configured):
    own = {"x": "https://x.com", "tiktok": "https://www.tiktok.com", "pinterest": "https://www.pinterest.com"}
    assert {name: getattr(configured().providers, name).site_url for name in own} == own
    trial = configured('[providers.pinterest]\napi_url = "https://api-sandbox.pinterest.com/v5"')
    assert trial.providers.pinterest.site_url == "https://www.pinterest.com", "Trial access has no pages of its own"
    gateway = configured(
        '[providers.x]\napi_url = "http://127.0.0.1:9000"\nauthorize_url = "https://sso.example/login"'
    )
    assert gateway.providers.x.site_url == "https://x.com", "an address that tells nothing about the site"
    stand_in = configured('[providers.tiktok]\nauthorize_url = "http://127.0.0.1:8100/tiktok/v2/auth/authorize"')
    assert stand_in.providers.tiktok.site_url == "http://127.0.0.1:8100/tiktok"
