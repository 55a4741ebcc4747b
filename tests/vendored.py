"""Vendored scripts and styles: unchanged files of other projects.

    python -m tests.vendored

(`make vendored`, with npm) fetches the packages that `vendored.json` names and writes their files again. The checksums
there must match. To upgrade a package, edit its `version`: the checksums of a new version are recorded, and the folder
of the previous version is removed.

A script may contain other packages. A file with a `map` is made here: it holds the licence of every package that this
source map names, and of those listed as `besides`, which leave no trace there. For a package without a licence text,
`licences_from` names one of the same project that has it.
"""

import gzip
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Collection
from fnmatch import fnmatch
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from socialpub.web.http import static

LIST = static.FOLDER / static.VENDORED / "vendored.json"

Package = dict[str, Any]

_IN_MAP = re.compile(r"node_modules/\.pnpm/([^/\s]+)/node_modules/((?:@[^/\s]+/)?[^/\s]+)/")
"""The folder that pnpm gives a package, which ends with its version, and the package's name."""
_LICENCE = re.compile(r"(licen[sc]e|notice|copying)[^/]*", re.IGNORECASE)
_RULE = "=" * 80


def folder_of(package: Package) -> Path:
    return static.FOLDER / static.vendored_folder(package["package"], package["version"])


def path_of(package: Package, file: dict[str, Any]) -> Path:
    """Return the path of a file: its own name, without the folders of the package. Large files are compressed."""
    name = PurePosixPath(file["file"]).name
    return folder_of(package) / (f"{name}.gz" if file.get("compressed") else name)


def stored(package: Package, file: dict[str, Any]) -> bytes:
    """The content of a file as it was published."""
    content = path_of(package, file).read_bytes()
    return gzip.decompress(content) if file.get("compressed") else content


def checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def fetched(names: Collection[str]) -> dict[str, dict[str, bytes]]:
    """Return the files of packages (`htmx.org@4.0.1`) as npm has them, by name and by path inside the package."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "pack", *names, "--silent", "--pack-destination", folder], check=True, stdout=sys.stderr)
        for archive in Path(folder).glob("*.tgz"):
            with tarfile.open(archive) as tar:
                files = {
                    member.name.partition("/")[2]: file.read()
                    for member in tar
                    if member.isfile() and (file := tar.extractfile(member)) is not None
                }
            about = json.loads(files["package.json"])
            found[f"{about['name']}@{about['version']}"] = files
    return found


@cache
def published(name: str) -> dict[str, bytes]:
    """Return the files of one package."""
    return fetched([name])[name]


def bundled(source_map: bytes) -> set[str]:
    """Return the packages of which a bundle has parts. One that was bundled before names its own in comments."""
    content = json.loads(source_map)
    texts = [*content["sources"], *filter(None, content.get("sourcesContent", ()))]
    named = {found for text in texts for found in _IN_MAP.findall(text)}
    return {f"{name}@{_version(folder.removeprefix(name.replace('/', '+') + '@'))}" for folder, name in named}


def _version(text: str) -> str:
    return text.partition("_")[0].partition("(")[0]  # behind it are the packages that it was built with


def notices(title: str, names: Collection[str], licences_from: dict[str, str]) -> bytes:
    """Return the licences of packages, each text once. Exits when a package has none."""
    packages = fetched([*names, *licences_from.values()])
    owners = defaultdict(list)
    for name in sorted(names):
        text = _licence(packages[name])
        if not text:
            own_name = name.rpartition("@")[0]
            source = next((one for pattern, one in licences_from.items() if fnmatch(own_name, pattern)), None)
            text = _licence(packages[source]) if source else ""
        if not text:
            sys.exit(f"{name} has no licence text: name a package of its project in licences_from")
        owners[text].append(f"{name} ({json.loads(packages[name]['package.json']).get('license', 'see below')})")
    parts = ["\n".join([_RULE, *of_text, _RULE, "", text]) for text, of_text in owners.items()]
    return "\n\n".join([title, *parts, ""]).encode()


def _licence(files: dict[str, bytes]) -> str:
    """Return the texts at the top of a package, with line ends and outer white space of one kind."""
    texts = [files[path].decode() for path in sorted(files) if _LICENCE.fullmatch(path)]
    return "\n\n".join("\n".join(line.rstrip() for line in text.splitlines()).strip() for text in texts)


def _content(package: Package, file: dict[str, Any]) -> bytes:
    own_name = f"{package['package']}@{package['version']}"
    if "map" in file:
        title = f"Licences of what the scripts of {own_name} contain, besides its own"
        names = bundled(published(own_name)[file["map"]]) | set(file.get("besides", ()))
        return notices(title, names, file.get("licences_from", {}))
    # Not every package of a project brings the project's licence along.
    return published(file.get("from", own_name))[file["file"]]


def write(package: Package) -> None:
    """The files of one package. Exits when one is not what its checksum says."""
    is_new = not folder_of(package).exists()
    for file in package["files"]:
        content = _content(package, file)
        if is_new or "sha256" not in file:
            file["sha256"] = checksum(content)
        elif file["sha256"] != checksum(content):
            sys.exit(f"{package['package']} {package['version']}: {file['file']} is not what its checksum says")
        path = path_of(package, file)
        if path.exists() and stored(package, file) == content:
            continue  # another zlib would compress it to other bytes
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(content, mtime=0) if file.get("compressed") else content)


def main() -> None:
    packages = static.vendored_packages()
    for package in packages:
        write(package)
    wanted = {folder_of(package) for package in packages}
    for folder in filter(Path.is_dir, LIST.parent.iterdir()):
        if folder not in wanted:
            shutil.rmtree(folder)
    LIST.write_text(json.dumps({"packages": packages}, indent=2) + "\n")


if __name__ == "__main__":
    main()
