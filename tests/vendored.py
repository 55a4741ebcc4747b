"""Scripts and styles of others, which lie in the repository as they were published.

    python -m tests.vendored

(`make vendored`, with npm) fetches the packages that `vendored.json` names and writes their files anew. The checksums
there must fit. For an upgrade edit a `version`: of a version that does not lie here yet the checksums are written down
instead, and the folder of the one before it goes.
"""

import gzip
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from socialpub.web import static_files

LIST = static_files.FOLDER / static_files.VENDORED / "vendored.json"

Package = dict[str, Any]


def folder_of(package: Package) -> Path:
    return static_files.FOLDER / static_files.vendored_folder(package["package"], package["version"])


def path_of(package: Package, file: dict[str, Any]) -> Path:
    """Where a file lies: under its own name, whatever its folder inside the package; large ones compressed."""
    name = PurePosixPath(file["file"]).name
    return folder_of(package) / (f"{name}.gz" if file.get("compressed") else name)


def stored(package: Package, file: dict[str, Any]) -> bytes:
    """The content of a file as it was published."""
    content = path_of(package, file).read_bytes()
    return gzip.decompress(content) if file.get("compressed") else content


def checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@cache
def published(name: str) -> dict[str, bytes]:
    """The files of a package (`htmx.org@4.0.1`) as npm has them, by their path inside of it."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "pack", name, "--silent", "--pack-destination", folder], check=True, stdout=sys.stderr)
        (archive,) = Path(folder).glob("*.tgz")
        with tarfile.open(archive) as tar:
            return {
                member.name.removeprefix("package/"): file.read()
                for member in tar
                if member.isfile() and (file := tar.extractfile(member)) is not None
            }


def write(package: Package) -> None:
    """The files of one package. Exits when one is not what its checksum says."""
    is_new = not folder_of(package).exists()
    own_name = f"{package['package']}@{package['version']}"
    for file in package["files"]:
        # Not every package of a project brings the project's licence along.
        content = published(file.get("from", own_name))[file["file"]]
        if is_new:
            file["sha256"] = checksum(content)
        elif file["sha256"] != checksum(content):
            sys.exit(f"{package['package']} {package['version']}: {file['file']} is not what its checksum says")
        path = path_of(package, file)
        if path.exists() and stored(package, file) == content:
            continue  # another zlib would compress it to other bytes
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(content, mtime=0) if file.get("compressed") else content)


def main() -> None:
    packages = static_files.vendored_packages()
    for package in packages:
        write(package)
    wanted = {folder_of(package) for package in packages}
    for folder in filter(Path.is_dir, LIST.parent.iterdir()):
        if folder not in wanted:
            shutil.rmtree(folder)
    LIST.write_text(json.dumps({"packages": packages}, indent=2) + "\n")


if __name__ == "__main__":
    main()
