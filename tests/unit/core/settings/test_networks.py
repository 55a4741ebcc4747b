"""Where bytes may be sent: to the hosts of the network, and to nobody who only looks like them."""


def test_upload_hosts_of_the_networks_own_are_allowed_and_their_look_alikes_are_not(configured):
    tiktok, pinterest = configured().providers.tiktok, configured().providers.pinterest
    assert tiktok.allows_upload_host("open-upload.tiktokapis.com")
    assert tiktok.allows_upload_host("UPLOAD.us.tiktokapis.com")
    assert pinterest.allows_upload_host("pinterest-media-upload.s3-accelerate.amazonaws.com")
    for host in (
        "upload.tiktokapis.com",
        "upload.a.b.tiktokapis.com",
        "upload..tiktokapis.com",
        "evil.com",
        "open-upload.tiktokapis.com.evil.com",
        "xopen-upload.tiktokapis.com",
        "",
    ):
        assert not tiktok.allows_upload_host(host), host
    assert not pinterest.allows_upload_host("amazonaws.com")
    assert not pinterest.allows_upload_host("x.notamazonaws.com")


def test_the_host_of_an_api_url_pointed_elsewhere_is_allowed_and_the_networks_own_api_host_is_not(configured):
    s = configured('[providers.tiktok]\napi_url = "http://127.0.0.1:9000/tiktok"')
    assert s.providers.tiktok.allows_upload_host("127.0.0.1")
    assert not s.providers.pinterest.allows_upload_host("127.0.0.1")
    assert not configured().providers.tiktok.allows_upload_host("open.tiktokapis.com")


def test_an_upload_host_is_a_name_and_nothing_more(mistakes):
    for wrong in ("https://a.example", "a.example/path", "a.example:443", "*", "a.*", "a*.example", ""):
        assert "providers.x.upload_hosts" in mistakes(f'[providers.x]\nupload_hosts = ["{wrong}"]')
