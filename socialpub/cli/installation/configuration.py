"""The service's configuration: made once, never overwritten, and readable for the service's group alone.

Of a configuration that is there only `listen` and `data_dir` are read: the rest may lean on credentials that systemd
hands to the services and to nobody else. Whether a new version accepts it is asked of its own program.
"""

import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from socialpub.cli.installation.places import InstallationPlaces
from socialpub.core import commands
from socialpub.core.errors import OperatorError
from socialpub.core.settings import init_template, toml_errors
from socialpub.core.settings.loader import Settings

NEEDED = ("listen", "data_dir")


def text(places: InstallationPlaces) -> str:
    return init_template.config_for(places.data)


def read(places: InstallationPlaces) -> Settings:
    """What of it the units have to agree with. Raises OperatorError."""
    file = places.real(places.config)
    written = file.read_text("utf-8-sig") if file.exists() else text(places)
    try:
        values = tomllib.loads(written)
        return Settings.model_validate(
            {name: values[name] for name in NEEDED if name in values}, context={"folder": places.configuration}
        )
    except tomllib.TOMLDecodeError as error:
        mistake, remedy = toml_errors.explain(written, error)
        raise OperatorError(f"{file} {mistake}.", remedy) from None
    except ValidationError as error:
        name = ".".join(map(str, error.errors()[0]["loc"]))
        raise OperatorError(
            f"{file}: {name} cannot be used.",
            f"Correct it. `{commands.line('config', '--example')}` explains every key.",
        ) from None


def refusal(program: Path, config: Path, identity: Mapping[str, Any]) -> str:
    """What the program of a version says against a configuration, as the service's user; empty: nothing."""
    asked = subprocess.run(  # noqa: S603
        [program, "--config", str(config), "config"],
        capture_output=True, text=True, check=False, cwd="/", env={"LANG": "C.UTF-8"}, **identity,
    )  # fmt: skip
    return asked.stderr.strip() if asked.returncode else ""


def make_secret(places: InstallationPlaces, program: Path, identity: Mapping[str, Any]) -> None:
    """Have the service's user make secret.key. Raises OperatorError."""
    made = subprocess.run(  # noqa: S603
        [program, "--config", str(places.config), "init", "--new-secret"],
        capture_output=True, text=True, check=False, cwd="/", env={"LANG": "C.UTF-8"}, **identity,
    )  # fmt: skip
    if made.returncode:
        raise OperatorError(f"secret.key could not be made. {made.stderr.strip()}")
