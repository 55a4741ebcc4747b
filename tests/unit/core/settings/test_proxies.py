"""Which proxies are believed: addresses and networks, written so that nobody means another one."""

import pytest


def test_by_default_those_of_this_machine(configured):
    assert configured("").proxies.trusted == ("127.0.0.1", "::1")


def test_addresses_networks_and_the_socket_are_taken(configured):
    listed = configured('[proxies]\ntrusted = [" 10.0.0.0/8", "172.18.0.2", "FD00::/8", "unix"]')
    assert listed.proxies.trusted == ("10.0.0.0/8", "172.18.0.2", "fd00::/8", "unix")
    assert configured("[proxies]\ntrusted = []").proxies.trusted == ()


@pytest.mark.parametrize("wrong", ["proxy.example.com", "10.0.0.0/33", "1.2.3.4:80", "", "fe80::1%eth0", "*"])
def test_what_is_no_address_is_refused_with_what_is_accepted(mistakes, wrong):
    said = mistakes(f'[proxies]\ntrusted = ["{wrong}"]')
    assert "proxies.trusted" in said
    assert "neither an address nor a network" in said
    assert "172.16.0.0/12" in said


def test_an_address_inside_of_a_network_is_asked_about(mistakes):
    """Whoever writes 10.0.0.7/8 may have meant one machine, or sixteen million."""
    assert "write 10.0.0.0/8" in mistakes('[proxies]\ntrusted = ["10.0.0.7/8"]')


def test_a_single_text_is_no_list(mistakes):
    assert "proxies.trusted" in mistakes('[proxies]\ntrusted = "10.0.0.0/8"')
