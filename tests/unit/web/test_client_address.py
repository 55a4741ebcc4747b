"""Where a request comes from, and what counts as one place."""

import pytest

from socialpub.web import client_address


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        ("203.0.113.9", None, "203.0.113.9"),
        ("203.0.113.9", b"198.51.100.1", "203.0.113.9"),
        ("127.0.0.1", None, "127.0.0.1"),
        ("127.0.0.1", b"10.0.0.1, 198.51.100.1", "198.51.100.1"),
        ("::1", b"198.51.100.1:50000", "198.51.100.1"),
        ("::1", b"[2001:db8::1]:50000", "2001:db8::1"),
        ("::1", b"[2001:db8::1]", "2001:db8::1"),
        ("::1", b"2001:DB8::1", "2001:db8::1"),
        ("::1", b"::ffff:198.51.100.1", "198.51.100.1"),
        ("127.0.0.1", b"unknown", "127.0.0.1"),
        ("127.0.0.1", b"198.51.100.1,", "127.0.0.1"),
        ("127.0.0.1", b"\xff\xfe", "127.0.0.1"),
        ("127.0.0.1", b"1" * 100_000, "127.0.0.1"),
        ("", b"198.51.100.1", ""),
    ],
)
def test_only_a_proxy_of_this_machine_is_believed_and_only_an_address(peer, forwarded, expected):
    assert client_address.find(peer, forwarded) == expected


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
def test_a_whole_64_of_ipv6_is_one_place(address, expected):
    assert client_address.place(address) == expected
