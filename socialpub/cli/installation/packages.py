"""What socialpub consists of here: itself and the packages that it needs, as they are installed.

They are copied file by file, so that what runs as a service is what was installed and tried, and nothing is fetched.
Tools of tests that lie beside them stay behind.
"""

import json
import re
import shutil
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import socialpub
from socialpub.core import version
from socialpub.core.errors import OperatorError

NAME = "socialpub"


def needed(name: str = NAME) -> list[Distribution]:
    """The installed package of that name and all that it needs, with the extras that are asked for."""
    found: dict[str, Distribution] = {}
    waiting, seen = [(name, "")], set[tuple[str, str]]()
    while waiting:
        name, extra = waiting.pop()
        if (canonicalize_name(name), extra) in seen:
            continue
        seen.add((canonicalize_name(name), extra))
        try:
            package = found.setdefault(canonicalize_name(name), distribution(name))
        except PackageNotFoundError:
            raise OperatorError(f"The package {name} is missing here.", "Install socialpub again, whole.") from None
        for line in package.requires or ():
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                waiting += [(requirement.name, wanted) for wanted in ("", *requirement.extras)]
    return list(found.values())


def copy(packages: list[Distribution], site: Path) -> None:
    """Put all of their modules into the folder `site`. Raises OperatorError."""
    for package in packages:
        if canonicalize_name(package.name) == NAME and _is_linked(package):
            _copy_linked(package, site)
        elif package.files is None:
            raise OperatorError(
                f"What belongs to the package {package.name} is not known: it was not installed by pip or uv.",
                "Install socialpub into an environment of its own: pipx install ./dist/socialpub-*.whl",
            )
        else:
            for file in package.files:
                # Scripts and manuals lie outside of the modules' folder; what is compiled is made anew.
                if ".." not in file.parts and not file.is_absolute() and "__pycache__" not in file.parts:
                    _copy_file(Path(str(package.locate_file(file))), site / file)


def _is_linked(package: Distribution) -> bool:
    """Whether the environment only leads to a checkout, as `make setup` has it."""
    origin = json.loads(package.read_text("direct_url.json") or "{}")
    return bool(origin.get("dir_info", {}).get("editable")) or package.read_text("RECORD") is None


def _copy_linked(package: Distribution, site: Path) -> None:
    """The code as it lies in the checkout, and the description that an installed package has."""
    source = Path(socialpub.__file__).parent
    files = [path.relative_to(source.parent) for path in _files_below(source)]
    for file in files:
        _copy_file(source.parent / file, site / file)
    described = Path(f"{NAME}-{version.current()}.dist-info")
    # What the environment states is the version that was checked out when it was made.
    stated = package.read_text("METADATA") or package.read_text("PKG-INFO") or ""
    metadata = re.sub(r"^Version: .*$", f"Version: {version.current()}", stated, count=1, flags=re.MULTILINE)
    texts = {"METADATA": metadata, "entry_points.txt": package.read_text("entry_points.txt") or "", "RECORD": ""}
    texts["RECORD"] = "".join(f"{file},,\n" for file in [*files, *(described / name for name in texts)])
    (site / described).mkdir()
    for name, text in texts.items():
        (site / described / name).write_text(text)
        (site / described / name).chmod(0o644)


def _files_below(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            if path.name != "__pycache__":
                yield from _files_below(path)
        else:
            yield path


def _copy_file(source: Path, target: Path) -> None:
    """With the same content, readable for all, whoever the original was for."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o755 if source.stat().st_mode & 0o100 else 0o644)
