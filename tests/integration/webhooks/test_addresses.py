"""The addresses: which URLs are accepted, what is shown of them, and where their state appears."""

import pytest

from socialpub.core.errors import Conflict, InvalidRequest
from socialpub.ops.webhooks import receivers
from tests.support.webhook_receiver import add_webhook


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://hooks.example.com/services/T0/token?x=1#y", "https://hooks.example.com"),
        ("http://192.168.1.5:5678/webhook/abc", "http://192.168.1.5:5678"),
        ("http://ada:secret@n8n.lan/", "http://n8n.lan"),
        ("HTTPS://[::1]:8443/", "https://[::1]:8443"),
        ("https://münchen.example/", "https://xn--mnchen-3ya.example"),
    ],
)
def test_any_http_url_is_accepted_and_named_by_scheme_host_and_port(url, name):
    assert receivers.parse_url(f" {url}\n")[1] == name


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("n8n.lan/hidden", "must begin with http:// or https:// and a host"),
        ("ftp://n8n.lan/hidden", "must begin with http:// or https:// and a host"),
        ("http:///hidden", "must begin with http:// or https:// and a host"),
        ("http://n8n.lan:99999/hidden", "must have a valid host and port"),
        ("http://n8n.lan:0/hidden", "must have a valid host and port"),
        ("http://n8n.lan:x/hidden", "is not a URL"),
        ("http://n8n lan/hidden", "must have a valid host and port"),
        ("http://n8n.lan/hidden\n/", "is not a URL"),
        ("http://[::1/hidden", "is not a URL"),
        (f"http://n8n.lan/hidden{'a' * 2048}", "may have at most 2048 characters"),
    ],
)
def test_any_other_text_is_refused_with_the_reason_and_is_not_quoted(url, message):
    with pytest.raises(InvalidRequest) as refused:
        receivers.parse_url(url)
    [error] = refused.value.errors
    assert (error.path, error.message) == (("url",), message)


def test_there_are_at_most_20_webhooks(rt, receiver):
    for _ in range(receivers.MAX_ADDRESSES):
        add_webhook(rt, receiver, "http://receiver.test/")
    with pytest.raises(Conflict, match="already 20 webhooks"):
        add_webhook(rt, receiver, "http://receiver.test/")
