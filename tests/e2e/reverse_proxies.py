"""The manual's reverse proxies, run as written: the real programs, without privileges, on a free port.

The tests change only ports, the server's address and the paths of its certificate.
"""

import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.e2e.processes import until
from tests.support.ports import free_port
from tests.support.readme import blocks, topic

PAGE = topic("proxies")
PATH = "/social"
"""Of `base_url`; the proxy takes it away."""


class ReverseProxy:
    """`base_url` is the address that callers see. `trust` is for a client that verifies it, if it has a certificate."""

    def __init__(self, folder: Path, base_url: str, trust: ssl.SSLContext | bool = True) -> None:
        self.folder = folder
        self.base_url = base_url
        self.trust = trust

    @contextmanager
    def running(self, *command: str) -> Iterator["ReverseProxy"]:
        """It listens, until the end of the context."""
        said = self.folder / "proxy.log"
        with said.open("wb") as log:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=os.environ | dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"), str(self.folder)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            until(lambda: self._listens() or process.poll() is not None, "the proxy listens")
            assert process.poll() is None, said.read_text()
            yield self
        finally:
            process.terminate()
            process.wait(60)

    def _listens(self) -> bool:
        parts = urlsplit(self.base_url)
        with socket.socket() as sock:
            return sock.connect_ex((parts.hostname, parts.port)) == 0


@contextmanager
def nginx(folder: Path, appliance_port: str) -> Iterator[ReverseProxy]:
    program = _program("nginx", "nginx-light")
    port, certificate, key = free_port(), folder / "fullchain.pem", folder / "privkey.pem"
    _certify(certificate, key)
    (sample,) = blocks(PAGE, "## nginx", "nginx")
    server = _with(
        sample,
        {
            "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
            "/etc/letsencrypt/live/social.example.com/fullchain.pem": str(certificate),
            "/etc/letsencrypt/live/social.example.com/privkey.pem": str(key),
            "127.0.0.1:8000": f"127.0.0.1:{appliance_port}",
        },
    )
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in kinds)
    # Started by root it would hand its work to somebody who may not look into the test's folder.
    user = "user root;\n" if os.geteuid() == 0 else ""
    config = folder / "nginx.conf"
    config.write_text(
        f"{user}daemon off;\npid {folder}/nginx.pid;\nerror_log stderr;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{places}{server}}}\n"
    )
    proxy = ReverseProxy(folder, f"https://127.0.0.1:{port}{PATH}", ssl.create_default_context(cafile=certificate))
    with proxy.running(program, "-p", str(folder), "-c", str(config), "-e", "stderr"):
        yield proxy


@contextmanager
def caddy(folder: Path, appliance_port: str) -> Iterator[ReverseProxy]:
    program = _program("caddy", "caddy")
    port = free_port()
    (sample,) = blocks(PAGE, "## Caddy", "caddyfile")
    # By http: for a name of its own Caddy would ask a public authority for a certificate.
    site = _with(
        sample,
        {
            "{\n\tservers {": "{\n\tadmin off\n\tdefault_bind 127.0.0.1\n\tservers {",
            "social.example.com": f"http://127.0.0.1:{port}",
            "127.0.0.1:8000": f"127.0.0.1:{appliance_port}",
        },
    )
    config = folder / "Caddyfile"
    config.write_text(site)
    proxy = ReverseProxy(folder, f"http://127.0.0.1:{port}{PATH}")
    with proxy.running(program, "run", "--config", str(config), "--adapter", "caddyfile"):
        yield proxy


PROXIES: Mapping[str, Callable[[Path, str], AbstractContextManager[ReverseProxy]]] = {"nginx": nginx, "caddy": caddy}
"""Each with (folder, the appliance's port); it runs as long as the context lasts."""


def _program(name: str, package: str) -> str:
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found is None:
        pytest.skip(f"no {name} on this machine: apt-get install {package}")
    return found


def _with(sample: str, replaced: Mapping[str, str]) -> str:
    for written, here in replaced.items():
        assert written in sample, f"the manual's sample has no {written!r}"
        sample = sample.replace(written, here)
    return sample


def _certify(certificate: Path, key: Path) -> None:
    """A certificate for 127.0.0.1 that vouches for itself."""
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(private, hashes.SHA256())
    )
    certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    key.write_bytes(private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
