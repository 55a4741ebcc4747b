"""Root does not work in another user's data folder: what it left there, the service could not write any more.

Nothing is done in that user's name unasked: which of root's files it would then need (a copy's target, credentials)
cannot be known here. The very command for that is told instead.
"""

import os
import pwd

from socialpub.core import commands
from socialpub.core.errors import OperatorError
from socialpub.core.settings.loader import Settings


class WrongUser(OperatorError):
    """This must be run as somebody else."""


def refuse_root(settings: Settings) -> None:
    """Raises WrongUser when this is root and the data folder, or where it would be made, is another user's."""
    if os.geteuid() != 0:
        return
    folder = next(path for path in (settings.data_dir, *settings.data_dir.parents) if path.exists())
    uid = folder.stat().st_uid
    if uid == 0:
        return
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        user = f"#{uid}"
    raise WrongUser(
        f"{folder} belongs to {user}, who could not write what root leaves there.",
        f"Run it as that user: {commands.this_line_as(user, settings.config_file)}",
    )
