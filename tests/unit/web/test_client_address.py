"""Where a request comes from, and what counts as one place."""

import pytest

from socialpub.web.http import client_address
from socialpub.web.http.client_address import TrustedProxies

LOOPBACK = ("127.0.0.1", "::1")


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        ("203.0.113.9", [], "203.0.113.9"),
        ("203.0.113.9", [b"198.51.100.1"], "203.0.113.9"),
        ("127.0.0.1", [], "127.0.0.1"),
        ("127.0.0.1", [b"10.0.0.1, 198.51.100.1"], "198.51.100.1"),
        ("127.0.0.1", [b"10.0.0.1", b"198.51.100.1"], "198.51.100.1"),
        ("127.0.0.1", [b"198.51.100.1", b""], "127.0.0.1"),
        ("::ffff:127.0.0.1", [b"198.51.100.1"], "198.51.100.1"),
        ("::1", [b"198.51.100.1:50000"], "198.51.100.1"),
        ("::1", [b"[2001:db8::1]:50000"], "2001:db8::1"),
        ("::1", [b"[2001:db8::1]"], "2001:db8::1"),
        ("::1", [b"2001:DB8::1"], "2001:db8::1"),
        ("::1", [b"[fe80::1%eth0]:1"], "fe80::1"),
        ("::1", [b"::ffff:198.51.100.1"], "198.51.100.1"),
        ("127.0.0.1", [b"unknown"], "127.0.0.1"),
        ("127.0.0.1", [b'for="198.51.100.1"'], "127.0.0.1"),
        ("127.0.0.1", [b"198.51.100.1,"], "127.0.0.1"),
        ("127.0.0.1", [b"\xff\xfe"], "127.0.0.1"),
        ("127.0.0.1", [b"1" * 100_000], "127.0.0.1"),
        ("127.0.0.1", [b"198.51.100.1, " * 10_000 + b"198.51.100.2"], "198.51.100.2"),
        ("", [b"198.51.100.1"], ""),
    ],
)
def test_only_a_local_proxy_with_a_valid_address_is_trusted(peer, forwarded, expected):
    assert TrustedProxies(LOOPBACK).find_caller(peer, forwarded) == expected


CONTAINERS = (*LOOPBACK, "172.16.0.0/12", "fd00::/8", "unix")


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        ("172.18.0.5", [b"198.51.100.1"], "198.51.100.1"),
        ("::ffff:172.18.0.5", [b"198.51.100.1"], "198.51.100.1"),
        ("fd00::5", [b"198.51.100.1"], "198.51.100.1"),
        ("fe80::5%eth0", [b"198.51.100.1"], "fe80::5%eth0"),
        ("172.18.0.5", [b"9.9.9.9, 198.51.100.1, 172.19.0.2, 127.0.0.1"], "198.51.100.1"),
        ("172.18.0.5", [b"9.9.9.9, garbage, 172.19.0.2"], "172.19.0.2"),
        ("172.18.0.5", [b"172.19.0.9, 172.19.0.2"], "172.19.0.9"),
        ("192.168.1.4", [b"198.51.100.1"], "192.168.1.4"),
        ("", [b"198.51.100.1"], "198.51.100.1"),
    ],
)
def test_the_last_address_that_is_not_a_trusted_proxy_is_the_client(peer, forwarded, expected):
    """The client may have invented earlier addresses."""
    assert TrustedProxies(CONTAINERS).find_caller(peer, forwarded) == expected


def test_without_a_trusted_proxy_the_header_is_ignored():
    assert TrustedProxies(()).find_caller("127.0.0.1", [b"198.51.100.1"]) == "127.0.0.1"
    assert not TrustedProxies(()).contains("")


def test_a_network_of_mapped_addresses_is_an_ipv4_network():
    assert TrustedProxies(("::ffff:10.0.0.0/104",)).contains("10.1.2.3")


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_an_ipv6_64_is_one_client_network(address, expected):
    assert client_address.client_network(address) == expected
