"""The networks' sections: upload hosts, scopes and redirect URLs."""

import pytest


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
        ('["video.publish", "video.upload"]', "must contain user.info.basic"),
        ('["user.info.basic", "video.list"]', "must contain video.publish (direct posts) or video.upload (drafts)"),
        ("[]", "must contain user.info.basic"),
        ('"user.info.basic,video.upload"', "providers.tiktok.scopes"),
    ):
        message = mistakes(f"[providers.tiktok]\nscopes = {wrong}")
        assert "providers.tiktok.scopes" in message
        assert says in message


def test_the_scopes_of_pinterest_hold_what_a_pin_needs_and_may_hold_those_of_secret_boards(configured, mistakes):
    needed = ("user_accounts:read", "boards:read", "boards:write", "pins:read", "pins:write")
    assert configured().providers.pinterest.scopes == needed
    more = [*needed, "boards:read_secret", "pins:write_secret"]
    written = ", ".join(f'"{name}"' for name in more)
    assert configured(f"[providers.pinterest]\nscopes = [{written}]").providers.pinterest.scopes == tuple(more)
    for wrong, says in (
        ('["boards:read"]', "must contain user_accounts:read, boards:write, pins:read, pins:write"),
        ('["boards:raed"]', "'boards:raed' is not one of user_accounts:read"),
    ):
        assert says in mistakes(f"[providers.pinterest]\nscopes = {wrong}")


def test_links_to_posts_lead_to_the_site_that_has_the_consent_page(configured):
    own = {"x": "https://x.com", "tiktok": "https://www.tiktok.com", "pinterest": "https://www.pinterest.com"}
    assert {name: getattr(configured().providers, name).site_url for name in own} == own
    trial = configured('[providers.pinterest]\napi_url = "https://api-sandbox.pinterest.com/v5"')
    assert trial.providers.pinterest.site_url == "https://www.pinterest.com", "Trial access has no pages of its own"
    gateway = configured(
        '[providers.x]\napi_url = "http://127.0.0.1:9000"\nauthorize_url = "https://sso.example/login"'
    )
    assert gateway.providers.x.site_url == "https://x.com", "a URL without information about the site"
    stand_in = configured('[providers.tiktok]\nauthorize_url = "http://127.0.0.1:8100/tiktok/v2/auth/authorize"')
    assert stand_in.providers.tiktok.site_url == "http://127.0.0.1:8100/tiktok"


def test_a_redirect_address_is_the_callback_unless_one_is_named(configured):
    default = configured('base_url = "https://social.example.com/social"')
    assert default.redirect_url("x") == "https://social.example.com/social/oauth/x/callback"
    named = configured('[providers.pinterest]\nredirect_url = " http://localhost:8000/anything?a=b "')
    assert named.redirect_url("pinterest") == "http://localhost:8000/anything?a=b"
    assert named.redirect_url("x") == "http://127.0.0.1:8000/oauth/x/callback"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("localhost:8000/cb", "must begin with http:// or https://"),
        ("ftp://box/cb", "must begin with http:// or https://"),
        ("https:///cb", "must contain a host"),
        ("https://box/cb#x", "must not have a fragment"),
        ("https://me:secret@box/cb", "must not contain a user name"),
    ],
)
def test_a_redirect_address_that_is_none_is_rejected_with_what_is_accepted(mistakes, value, why):
    said = mistakes(f'[providers.tiktok]\nredirect_url = "{value}"')
    assert "providers.tiktok.redirect_url" in said
    assert why in said
    assert "an absolute http(s) URL without a fragment" in said
    assert "secret" not in said


@pytest.mark.parametrize(("written", "value"), [("true", True), ("false", False), ('"base64url"', "base64url")])
def test_pkce_is_true_false_or_the_standards_form(configured, written, value):
    assert configured(f"[providers.tiktok]\npkce = {written}").providers.tiktok.pkce == value
    variable = written.strip('"')
    assert configured("", SOCIALPUB_PROVIDERS__TIKTOK__PKCE=variable).providers.tiktok.pkce == value


@pytest.mark.parametrize("written", ['"hex"', "1", '"true"'])
def test_another_value_of_pkce_is_one_mistake_that_names_what_is_accepted(mistakes, written):
    said = mistakes(f"[providers.tiktok]\npkce = {written}")
    assert said.count("providers.tiktok.pkce") == 1
    assert '"base64url"' in said


def test_an_app_is_not_audited_unless_the_owner_says_so(configured):
    assert configured().providers.tiktok.audited is False
    assert configured("[providers.tiktok]\naudited = true").providers.tiktok.audited is True
