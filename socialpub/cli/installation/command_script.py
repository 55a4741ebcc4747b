"""The command `socialpub` of the machine: root does with it what the service's user may do, with its configuration."""

from socialpub.cli.installation.places import InstallationPlaces
from socialpub.core.command_forms import ServiceCommands

MARK = "# Made by `socialpub install-service`."


def text(places: InstallationPlaces) -> str:
    return f"""\
#!/bin/sh
{MARK} Root's commands are run as the user whose files they work on; those that
# change the installation itself, as root. Everybody else runs them as they are.
program={places.program}
if [ "$(id -u)" != 0 ]; then
    exec "$program" "$@"
fi
case "${{1-}}" in install-service | uninstall-service | go-back)
    exec "$program" "$@" ;;
esac
export HOME={places.data}
exec setpriv --reuid={places.user} --regid={places.user} --init-groups --inh-caps=-all -- \\
    "$program" --config {places.config} "$@"
"""


def commands_of(places: InstallationPlaces) -> ServiceCommands:
    """Return how the commands of the installed service are typed."""
    program, config = str(places.program), str(places.config)
    if is_foreign(places):
        return ServiceCommands(("sudo", f"--user={places.user}", program, "--config", config), program, places.user)
    return ServiceCommands(path=program, user=places.user)


def is_foreign(places: InstallationPlaces) -> bool:
    """Whether something else has that name, such as what `pipx install --global` puts there."""
    path = places.real(places.command)
    if path.is_symlink():
        return True
    return path.exists() and MARK.encode() not in path.read_bytes()
