"""The units as they are installed: fitted to where everything lies, and the socket to what `listen` says."""

from importlib import resources
from pathlib import Path

from socialpub.cli.installation.places import USUAL, InstallationPlaces
from socialpub.core.settings.loader import Settings
from socialpub.ops import socket_addresses

_FILES = resources.files("socialpub.cli") / "examples"
_KINDS = (".service", ".socket", ".timer")
SOCKET = "socialpub-web.socket"
ADDRESSES = f"{SOCKET}.d/listen.conf"
_STATE = Path("/var/lib")


def texts(places: InstallationPlaces, settings: Settings) -> dict[str, str]:
    """Every file by its name, relative to the folder of the units."""
    found = {
        file.name: _fitted(file.read_text("utf-8"), places)
        for file in sorted(_FILES.iterdir(), key=lambda file: file.name)
        if file.name.startswith("socialpub-") and file.name.endswith(_KINDS)
    }
    if SOCKET in found:
        found[ADDRESSES] = "\n".join([
            "# The value of `listen` in the configuration. install-service writes this file again.",
            "[Socket]",
            "BindIPv6Only=ipv6-only",
            "ListenStream=",
            *(f"ListenStream={address}" for address in socket_addresses.wanted(settings)),
            "",
        ])  # fmt: skip
    return found


def _fitted(text: str, places: InstallationPlaces) -> str:
    for usual, wanted in (
        (USUAL.programs, places.programs),
        (USUAL.configuration, places.configuration),
        (USUAL.data, places.data),
    ):
        text = text.replace(str(usual), str(wanted))
    for key in ("User", "Group"):
        text = text.replace(f"\n{key}={USUAL.user}\n", f"\n{key}={places.user}\n")
    if places.data == USUAL.data:
        return text
    return "\n".join(line for before in text.split("\n") for line in _with_data(before, places.data))


def _with_data(line: str, data: Path) -> list[str]:
    """A line of a unit whose data lies elsewhere: systemd makes what lies below /var/lib, and nothing else."""
    below = data.is_relative_to(_STATE)
    if line.startswith("StateDirectory=") and below:
        return [f"StateDirectory={data.relative_to(_STATE)}"]
    return [] if line.startswith("StateDirectory") and not below else [line]
