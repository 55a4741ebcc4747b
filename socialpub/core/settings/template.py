"""Creates a configuration, a data folder and a `secret.key` for `socialpub init`.

Existing files never change. If a step fails, everything that was created is removed again. A new `secret.key` for an
existing database would make every stored token unreadable.
"""

import os
from contextlib import ExitStack
from pathlib import Path

from socialpub.core import commands, durable_files
from socialpub.core.errors import OperatorError, file_system_cannot
from socialpub.core.secrets import crypto

CONFIG = """\
# The configuration of socialpub. `socialpub config --example` explains every key and its default.
# Environment variables such as SOCIALPUB_BASE_URL or SOCIALPUB_PROVIDERS__X__CLIENT_ID override these keys.

base_url = "http://127.0.0.1:8000"     # the URL of this appliance for callers, browsers and networks
listen = "127.0.0.1:8000"              # "[::]:8000" for every interface
data_dir = "data"                      # database, media and secret.key; relative to this file

# Add one section for each network. Register an app there. As its redirect URL, allow
# {base_url}/oauth/<network>/callback, or set redirect_url to another URL.
# `socialpub doctor` reports which redirect URLs the network accepts.
# Copy the app's credentials to this file. Then run: socialpub admin connect-profile x

# [providers.x]                        # console.x.com, an app of type "Web App"
# client_id = ""
# client_secret = ""                   # or client_secret_file = "x.secret"

# [providers.tiktok]                   # developers.tiktok.com
# client_key = ""
# client_secret = ""

# [providers.pinterest]                # developers.pinterest.com
# redirect_url = "http://localhost:8000/oauth/pinterest/callback"
# client_id = ""
# client_secret = ""
"""


def config_for(data_dir: Path) -> str:
    """Return the text of a configuration with this data folder."""
    line = next(line for line in CONFIG.splitlines() if line.startswith("data_dir"))
    return CONFIG.replace(line, f'data_dir = "{data_dir}"'.ljust(38) + " # database, media and secret.key")


class AlreadyThere(OperatorError):
    """A file exists that `create` would overwrite."""


def create(folder: Path) -> list[Path]:
    """Create `config.toml`, `data/` (mode 0700) and `data/secret.key` (mode 0600) in `folder`. Return their paths.

    An empty data folder, such as a mounted volume, stays and gets its mode. Raise `AlreadyThere` or `OperatorError`,
    without any change.
    """
    config, data = folder / "config.toml", folder / "data"
    key = data / "secret.key"
    for path in (config, key, data / "socialpub.db"):
        if path.exists() or path.is_symlink():
            raise _already_there(path)
    with ExitStack() as undo:
        try:
            _make_folder(folder, 0o777, undo)
            _make_folder(data, 0o700, undo)
            _write(key, crypto.new_key(), undo)
            _write(config, CONFIG.encode(), undo)
            _restrict(data)
        except FileExistsError as error:  # another process created it, or a file has the name of a folder
            raise _already_there(Path(error.filename)) from None
        except OSError as error:
            raise OperatorError(
                f"{error.filename or folder} cannot be written: {error.strerror}.",
                f"Choose a folder that you can write to: `{commands.line('init', 'DIR')}`",
            ) from None
        undo.pop_all()
    return [config, data, key]


def _restrict(data: Path) -> None:
    try:
        data.chmod(0o700)
    except PermissionError as error:
        if data.stat().st_uid != os.geteuid():
            raise
        raise file_system_cannot("keep files from other users (chmod)") from error


def _already_there(path: Path) -> AlreadyThere:
    return AlreadyThere(
        f"{path} already exists, and init does not overwrite files.",
        f"Choose another folder (`{commands.line('init', 'DIR')}`), or move {path.name} to another place.",
    )


def _make_folder(folder: Path, mode: int, undo: ExitStack) -> None:
    missing = [f for f in (folder, *folder.parents) if not f.is_dir()]
    for path in reversed(missing):
        path.mkdir(mode=mode)
        undo.callback(path.rmdir)


def _write(path: Path, content: bytes, undo: ExitStack) -> None:
    with durable_files.create(path) as file:
        undo.callback(path.unlink)
        file.write(content)
        durable_files.flush(file)
