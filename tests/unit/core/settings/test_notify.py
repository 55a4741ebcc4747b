"""Addresses that hold passwords: read from a list, a variable or a file, and never shown."""

from hashlib import sha256

import pytest

from socialpub.core.settings.schema import display_url

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
        ('["gotify://hidden", "gotify://hidden"]', "number 2 (gotify) is there twice"),
        ('["gotify://hid\\nden"]', "number 1 (gotify) must not hold line breaks"),
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
    assert configured('[notify]\ncauses = ["disk", "copy"]').notify.causes == ("disk", "copy")
    assert "'dusk' is none of them" in mistakes('[notify]\ncauses = ["dusk"]')
