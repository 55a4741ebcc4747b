"""What `socialpub init` creates: a configuration, a data folder, a key.

All of it or nothing: what already exists is never changed, and what was created is removed again when a later part
fails. A second `secret.key` beside the first one's data would make every stored token unreadable.
"""

from contextlib import ExitStack
from pathlib import Path

from socialpub.core import commands, durable_files
from socialpub.core.errors import OperatorError
from socialpub.core.secrets import crypto

CONFIG = """\
# socialpub's configuration. Every key, its default and what it is for: socialpub config --example
# Each can also be set in the environment, such as SOCIALPUB_BASE_URL or SOCIALPUB_PROVIDERS__X__CLIENT_ID.

base_url = "http://127.0.0.1:8000"     # as callers, browsers and the networks reach this machine
listen = "127.0.0.1:8000"              # 0.0.0.0:8000 for every interface
data_dir = "data"                      # database, media and secret.key; relative to this file

# One section per network you publish to: register an app there, allow {base_url}/oauth/<network>/callback
# as its redirect address (or set redirect_url to another one; `socialpub doctor` says which the network accepts),
# and copy what it shows you. Then: socialpub admin connect-profile x

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
    """Return the text of a configuration whose data folder is elsewhere."""
    line = next(line for line in CONFIG.splitlines() if line.startswith("data_dir"))
    return CONFIG.replace(line, f'data_dir = "{data_dir}"'.ljust(38) + " # database, media and secret.key")


class AlreadyThere(OperatorError):
    """Something exists that `create` would have to overwrite."""


def create(folder: Path) -> list[Path]:
    """Write `config.toml`, `data/` (mode 0700) and `data/secret.key` (mode 0600) into `folder`, which may be missing.

    An empty data folder (a mounted volume) is taken as it is, with its mode set. Returns the three paths. Raises
    `AlreadyThere` before anything is changed, `OperatorError` when something cannot be written; then nothing is left.
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
            data.chmod(0o700)
        except FileExistsError as error:  # created by another process meanwhile, or a file where a folder belongs
            raise _already_there(Path(error.filename)) from None
        except OSError as error:
            raise OperatorError(
                f"{error.filename or folder} cannot be written: {error.strerror}.",
                f"Choose a folder that you may write to: `{commands.line('init', 'DIR')}`",
            ) from None
        undo.pop_all()
    return [config, data, key]


def _already_there(path: Path) -> AlreadyThere:
    return AlreadyThere(
        f"{path} already exists, and init overwrites nothing.",
        f"Choose another folder (`{commands.line('init', 'DIR')}`), or move it away to start again.",
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
