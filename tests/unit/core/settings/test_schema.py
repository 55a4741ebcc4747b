"""The accepted values of each key, and keys that depend on each other."""

from datetime import timedelta
from hashlib import sha256

import pytest

from socialpub.core.settings.schema import display_url

# --- sections --------------------------------------------------------------------------------------------------------


def test_sizes_are_numbers_or_text_with_a_unit_and_go_downwards_only(configured, mistakes):
    s = configured('[uploads]\nmax_image_bytes = "16MiB"\nmax_video_bytes = "100MB"\n[health]\ndisk_floor_bytes = 0')
    assert s.uploads.max_image_bytes == 16 * 1024 * 1024
    assert s.uploads.max_video_bytes == 100_000_000
    assert s.health.disk_floor_bytes == 0
    assert '"32MiB"' in mistakes('[uploads]\nmax_image_bytes = "33MiB"')
    assert "157286400" in mistakes("[uploads]\nmax_video_bytes = 157286401")
    assert "max_image_pixels" in mistakes("[uploads]\nmax_image_pixels = 100000001")
    for wrong in ("true", "-5", '"x"', "1.5", "0"):
        assert "uploads.max_image_bytes" in mistakes(f"[uploads]\nmax_image_bytes = {wrong}")


def test_a_duration_can_be_forever(configured):
    assert configured('[media]\nkeep_after_settled = "forever"').media.keep_after_settled is None
    assert configured('[media]\nkeep_after_settled = "90d"').media.keep_after_settled == timedelta(days=90)


def test_a_constant_is_an_unknown_key(mistakes):
    for section, key in (("publishing", "workers"), ("uploads", "url_lifetime"), ("retention", "trail")):
        assert f"{section}.{key} is not known" in mistakes(f'[{section}]\n{key} = "1h"')
    assert "database is not known" in mistakes('[database]\nbusy_timeout = "5s"')


# --- values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    ["", "example.com", "ftp://x", "http://", "https:///p", "http://x?q", "http://x#f", "http://u@x", "http://x:70000",
     "http://x y", "http://x\\n", "http://ü.de", "http://x:0"],
)  # fmt: skip
def test_an_invalid_base_url_is_rejected(mistakes, url):
    assert "base_url" in mistakes(f'base_url = "{url}"')


def test_nothing_is_coerced_silently(mistakes):
    assert "rate_limit.requests_per_minute" in mistakes('[rate_limit]\nrequests_per_minute = "8"')
    assert "providers.tiktok.pkce" in mistakes("[providers.tiktok]\npkce = 1")
    assert "providers.x.client_id" in mistakes("[providers.x]\nclient_id = 5")
    assert "publishing.give_up_after" in mistakes("[publishing]\ngive_up_after = 48")


def test_a_secret_shows_in_no_repr(configured):
    s = configured('[providers.x]\nclient_id = "id"\nclient_secret = "hush-hush"')
    assert s.providers.x.client_secret.get_secret_value() == "hush-hush"
    assert "hush" not in f"{s!r} {s} {s.model_dump()} {s.model_dump_json()}"


def test_credentials_lose_the_white_space_that_copying_added(configured):
    s = configured('[providers.x]\nclient_id = " id\\n"\nclient_secret = "\\tsecret \\n"')
    assert s.providers.x.client_id == "id"
    assert s.providers.x.client_secret.get_secret_value() == "secret"


# --- the quota -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "size"), [('"50GB"', 50_000_000_000), ('"1GiB"', 1 << 30), ("5000", 5000), ('"unlimited"', None)]
)
def test_a_quota_is_a_size_or_unlimited(configured, text, size):
    assert configured(f"[storage]\nquota = {text}").storage.quota == size


def test_without_a_quota_there_is_none(configured):
    assert configured("").storage.quota is None
    assert configured("", SOCIALPUB_STORAGE__QUOTA="2MB").storage.quota == 2_000_000


@pytest.mark.parametrize("wrong", ['"much"', '"forever"', "true", "1.5", '"-5GB"', "-1"])
def test_the_error_for_another_value_names_the_default(mistakes, wrong):
    said = mistakes(f"[storage]\nquota = {wrong}")
    assert "storage.quota" in said
    assert '(default "unlimited")' in said


# --- proxies ---------------------------------------------------------------------------------------------------------


def test_the_default_proxies_are_on_this_machine(configured):
    assert configured("").proxies.trusted == ("127.0.0.1", "::1")


def test_addresses_networks_and_the_socket_are_taken(configured):
    listed = configured('[proxies]\ntrusted = [" 10.0.0.0/8", "172.18.0.2", "FD00::/8", "unix"]')
    assert listed.proxies.trusted == ("10.0.0.0/8", "172.18.0.2", "fd00::/8", "unix")
    assert configured("[proxies]\ntrusted = []").proxies.trusted == ()


@pytest.mark.parametrize("wrong", ["proxy.example.com", "10.0.0.0/33", "1.2.3.4:80", "", "fe80::1%eth0", "*"])
def test_what_is_no_address_is_rejected_with_what_is_accepted(mistakes, wrong):
    said = mistakes(f'[proxies]\ntrusted = ["{wrong}"]')
    assert "proxies.trusted" in said
    assert "neither an IP address nor a network" in said
    assert "172.16.0.0/12" in said


def test_an_address_inside_of_a_network_is_asked_about(mistakes):
    assert "write 10.0.0.0/8" in mistakes('[proxies]\ntrusted = ["10.0.0.7/8"]')


def test_a_single_text_is_no_list(mistakes):
    assert "proxies.trusted" in mistakes('[proxies]\ntrusted = "10.0.0.0/8"')


# --- notifications ---------------------------------------------------------------------------------------------------


MAIL = "mailtos://owner:hidden-password@smtp.example.com?to=a@example.com,b@example.com"


def urls(settings):
    return [url.get_secret_value() for url in settings.notify.urls]


def test_addresses_come_from_a_list_a_variable_or_a_file(configured, tmp_path):
    both = [MAIL, "ntfy://topic"]
    assert urls(configured(f'[notify]\nurls = ["{MAIL} ", "ntfy://topic"]')) == both
    assert urls(configured("", SOCIALPUB_NOTIFY__URLS=f"{MAIL}, ntfy://topic")) == both, "an address may hold commas"
    (tmp_path / "notify.urls").write_text(f"# mail\n{MAIL}\n\nntfy://topic\n")
    assert urls(configured('[notify]\nurls_file = "notify.urls"')) == both


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('["ntfy://topic", "hidden-token"]', "number 2 must begin with a service and ://"),
        ('["gotify://hidden", "gotify://hidden"]', "number 2 (gotify) is a duplicate"),
        ('["gotify://hid\\nden"]', "number 1 (gotify) must not contain line breaks"),
        ('"gotify://hidden"', "must be an array, not a string"),
        ("[5]", "must be a string, not a number"),
    ],
)
def test_a_wrong_address_is_named_by_its_place(mistakes, written, said):
    message = mistakes(f"[notify]\nurls = {written}")
    assert said in message
    assert "hidden" not in message
    assert "notify.urls" in message


@pytest.mark.parametrize(
    ("url", "name"),
    [
        (MAIL, "mailtos://smtp.example.com"),
        ("mailto://owner:hidden@example.com?smtp=mail.example.net", "mailto://example.com"),
        ("mailto://owner:hidden/hidden@example.com", "mailto://"),
        ("JSON://owner:hidden@Nas.Lan:8080/hidden?token=hidden", "json://nas.lan"),
        ("json://[fd00::1]/hidden", "json://[fd00::1]"),
        ("gotify://gotify:8080/hidden", "gotify://gotify"),
        ("ntfys://owner:hidden@ntfy.example.com/hidden", "ntfys://ntfy.example.com"),
        ("ntfy://hidden", "ntfy://"),
        ("ntfy://hidden.topic/", "ntfy://"),
        ("tgram://123456789:hidden_hidden/12345/", "tgram://"),
        ("discord://123456789/hidden", "discord://"),
        ("pbul://o.hidden", "pbul://"),
        ("json://\x1b[31m.example.com/", "json://"),
    ],
)
def test_the_name_of_an_address_is_its_scheme_and_its_host_and_never_a_secret(url, name):
    assert display_url(url) == name


def test_addresses_are_secrets(configured):
    settings = configured(f'[notify]\nurls = ["{MAIL}"]')
    assert "hidden-password" not in repr(settings)
    assert MAIL in settings.secret_values()


def test_another_address_is_a_changed_configuration(configured):
    def sign(*parts):
        return sha256("\n".join(parts).encode()).hexdigest()

    before, after = (configured(f'[notify]\nurls = ["ntfy://{topic}"]').fingerprints(sign) for topic in ("one", "two"))
    assert before["notify.urls"] != after["notify.urls"]


def test_causes_are_known_ones(configured, mistakes):
    assert configured('[notify]\ncauses = ["disk", "backup"]').notify.causes == ("disk", "backup")
    assert "'dusk' is not an accepted value" in mistakes('[notify]\ncauses = ["dusk"]')


def test_hosts_for_imports_are_names_addresses_and_networks(configured, mistakes):
    given = configured('[media]\nimport_from = ["NAS.lan.", "192.168.1.0/24", "10.0.0.7", "::1", "a_b-c.example"]')
    assert given.media.import_from == ("nas.lan", "192.168.1.0/24", "10.0.0.7", "::1", "a_b-c.example")
    assert configured().media.import_from == ()
    for wrong in (
        "",
        "http://nas.lan",
        "nas.lan:80",
        "nas lan",
        "user@nas.lan",
        "192.168.1.300",
        "[::1]",
        "fe80::1%eth0",
    ):
        message = mistakes(f'[media]\nimport_from = ["{wrong}"]')
        assert "media.import_from" in message
        assert "neither a host name nor an IP address nor a network" in message
    for wrong in ("nas/1", "192.168.1.7/24"):
        assert "media.import_from" in mistakes(f'[media]\nimport_from = ["{wrong}"]')
    assert "write 192.168.1.0/24" in mistakes('[media]\nimport_from = ["192.168.1.7/24"]')
