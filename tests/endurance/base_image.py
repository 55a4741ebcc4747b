"""The root of an image with Python and pip, made of this machine's own files: no registry is asked."""

import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

PROGRAMS = ("sh", "cat", "mkdir", "chown", "chmod", "id")
LINKS = ("bin", "lib", "lib64", "sbin")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "site-packages", "dist-packages", "test", "idlelib", "*.a")


def make(root: Path, wheels: str) -> None:
    """`wheels` is where pip finds everything in there."""
    for folder in ("etc/ssl/certs", "proc", "sys", "dev", "run", "usr/bin", "usr/lib", "usr/lib64", "usr/local/bin"):
        (root / folder).mkdir(parents=True)
    for name in LINKS:
        if Path("/", name).is_symlink():
            (root / name).symlink_to(f"usr/{name}")
    python = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    stdlib = Path(sysconfig.get_path("stdlib"))
    programs = [Path(shutil.which(name) or name).resolve() for name in PROGRAMS]
    _copy(root, python)
    for name, program in zip(PROGRAMS, programs, strict=True):
        shutil.copy(program, root / "usr/bin" / name)
    shutil.copytree(stdlib, _in(root, stdlib), ignore=LEFT_OUT, dirs_exist_ok=True)
    for library in _libraries([python, *programs, *stdlib.glob("lib-dynload/*.so")]):
        _copy(root, library)
    for name in ("python3", "python"):
        (root / "usr/local/bin" / name).symlink_to(python)
    packages = Path(_ask(python, "import site; print(site.getsitepackages()[0])"))
    shutil.copytree(Path(sysconfig.get_path("purelib"), "pip"), _in(root, packages) / "pip", ignore=LEFT_OUT)
    (root / "tmp").mkdir(exist_ok=True)
    (root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\n")
    (root / "etc/pip.conf").write_text(f"[global]\nno-index = true\nfind-links = {wheels}\n")
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o755 if path.is_dir() else 0o444))
    (root / "tmp").chmod(0o1777)


def _libraries(files: list[Path]) -> set[Path]:
    """What they load, and what else belongs to the C library: packages of others may need it."""
    told = subprocess.run(["ldd", *map(str, files)], capture_output=True, text=True, check=False).stdout
    found = {Path(path) for path in re.findall(r"(/\S+\.so\S*) \(0x", told)}
    (libc,) = (path for path in found if path.name.startswith("libc.so"))
    wanted = ("libpthread", "libdl", "librt", "libutil", "libresolv", "libnss_files", "libstdc++", "libgcc_s")
    return found | {path for name in wanted for path in libc.parent.glob(f"{name}.so.[0-9]")}


def _copy(root: Path, file: Path) -> None:
    target = _in(root, file)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(file, target)


def _in(root: Path, path: Path) -> Path:
    return root / path.relative_to("/")


def _ask(python: Path, code: str) -> str:
    return subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=True).stdout.strip()
