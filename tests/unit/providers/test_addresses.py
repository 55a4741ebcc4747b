"""The IP addresses to which the appliance connects for a URL that others chose."""

import socket
from ipaddress import IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socialpub.providers import ip_addresses
from socialpub.providers.ip_addresses import AllowedHosts, is_public


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "2606:4700::1111", "64:ff9b::808:808", "2002:808:808::1", "::ffff:8.8.8.8"]
)
def test_an_address_that_the_whole_internet_reaches_is_public(address):
    assert is_public(ip_address(address))


SPECIAL = """
    127.0.0.1 10.0.0.1 172.16.0.1 192.168.1.1 169.254.169.254 100.64.0.1 0.0.0.0 0.1.2.3 192.0.0.8 192.0.2.1 192.88.99.1
    198.18.0.1 224.0.0.1 239.1.1.1 240.0.0.1 255.255.255.255 :: ::1 fe80::1 fc00::1 fd12::1 fec0::1 ff0e::1 100::1
    2001:db8::1 3fff::1 5f00::1 4000::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 64:ff9b:1::1 ::10.0.0.1
"""


@pytest.mark.parametrize("address", SPECIAL.split())
def test_a_special_address_is_not_public(address):
    assert not is_public(ip_address(address))


@given(st.ip_addresses(v=4))
def test_an_embedded_ipv4_address_decides_for_the_ipv6_address(inner):
    for start in (0xFFFF << 32, 0x64FF9B << 96):
        assert is_public(IPv6Address(start + int(inner))) == is_public(inner)
    assert is_public(IPv6Address((0x2002 << 112) + (int(inner) << 80) + 1)) == is_public(inner)


def test_a_listed_name_allows_its_addresses_under_that_name_only():
    allowed = AllowedHosts.parse(["nas.lan", "10.8.0.0/16", "192.168.1.7", "::1"])
    assert allowed.allow("nas.lan", "192.168.1.20")
    assert allowed.allow("NAS.lan.", "192.168.1.20")
    assert not allowed.allow("other.lan", "192.168.1.20")
    assert not allowed.allow("nas.lan.evil.example", "192.168.1.20")
    for address in ("10.8.3.4", "::ffff:10.8.3.4", "64:ff9b::10.8.3.4", "192.168.1.7", "::1", "8.8.8.8"):
        assert allowed.allow("any.lan", address)
    for address in ("10.9.0.1", "192.168.1.8", "::2"):
        assert not allowed.allow("any.lan", address)


@pytest.mark.parametrize("host", ["localhost", "127.1", "0x7f.1", "2130706433", "0177.0.0.1", "::1"])
def test_every_form_of_a_loopback_address_is_found_and_refused(host):
    found = ip_addresses.look_up(host, 80)
    assert found
    assert not any(AllowedHosts().allow(host, address) for address in found)


@pytest.mark.parametrize("failure", [socket.gaierror(), UnicodeError("label too long")])
def test_a_host_without_an_address_is_not_found(failure, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert ip_addresses.look_up("nowhere.example", 80) == []
