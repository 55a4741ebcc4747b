"""`make clients`: generate clients from the document of a running appliance, and let them publish to the sandbox.

All processes are real and on loopback. A warning of a generator or a type checker is a failure.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx2

from tests.e2e.installation import Installation
from tests.sandbox.files import picture

HERE = Path(__file__).parent
TIMEOUT_SECONDS = 300


def run(*command: str | Path, at: Path, path: Path | None = None) -> str:
    """Return the output of the command. It must exit with 0 and print no warning."""
    env = {**os.environ, "PATH": os.pathsep.join([str(path), os.environ["PATH"]])} if path else None
    done = subprocess.run(
        command, cwd=at, env=env, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
    )
    told = f"{done.stdout}\n{done.stderr}"
    if done.returncode or "warning" in told.lower():
        raise SystemExit(f"{' '.join(map(str, command[:3]))} ended with {done.returncode}:\n{told}")
    return done.stdout


def python_client(tools: Path, document: Path, arguments: list[str]) -> list[str]:
    """Generate the client, check the types of the program, run it, and return the ids of its posts."""
    folder, bin_ = document.parent, tools / "bin"
    run(
        bin_ / "openapi-python-client", "generate", "--path", document, "--output-path", folder / "client",
        "--meta", "none", "--fail-on-warning",
        at=folder, path=bin_,
    )  # fmt: skip
    program = folder / "program.py"
    program.write_bytes((HERE / program.name).read_bytes())
    run(
        sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--config-file=", "--follow-imports=silent",
        "--python-executable", bin_ / "python", program,
        at=folder,
    )  # fmt: skip
    return run(bin_ / "python", "-W", "error", program, *arguments, at=folder).split()


def typescript_client(tools: Path, document: Path, arguments: list[str]) -> list[str]:
    folder, bin_ = document.parent, tools / "node_modules" / ".bin"
    # Node looks for modules in the parents of the program.
    (folder / "node_modules").symlink_to(tools / "node_modules")
    (folder / "package.json").write_bytes((HERE / "package.json").read_bytes())
    run(bin_ / "openapi-typescript", document, "-o", folder / "api.ts", at=folder)
    program = folder / "program.ts"
    program.write_bytes((HERE / program.name).read_bytes())
    run(
        bin_ / "tsc", "--strict", "--noUncheckedIndexedAccess", "--exactOptionalPropertyTypes", "--target", "es2022",
        "--module", "nodenext", "--types", "node", "--outDir", folder / "made", program,
        at=folder,
    )  # fmt: skip
    # Debian's Node reports fetch as experimental.
    return run("node", "--no-warnings", folder / "made" / "program.js", *arguments, at=folder).split()


def main(tools: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="socialpub-clients-") as scratch:
        folder = Path(scratch)
        installation = Installation(folder / "appliance", pace=0)
        try:
            installation.prepare()
            installation.sandbox()
            installation.start("serve")
            live = httpx2.get(f"{installation.url}/api/v1/openapi-docs", trust_env=False)
            sunset = folder / "sunset.jpg"
            sunset.write_bytes(picture(800, 600))
            arguments = [installation.url, installation.key, installation.board_id, str(sunset)]
            made = {"Python": (python_client, "python"), "TypeScript": (typescript_client, "node")}
            for language, (client, where) in made.items():
                if not (tools / where / ".ready").exists():
                    print(f"{language}: left out, since its generator is not installed (no npm on this machine)")
                    continue
                document = folder / where / "openapi.json"
                document.parent.mkdir()
                document.write_bytes(live.content)
                pins = len(installation.pinterest.show()["pins"])
                ids = client(tools / where, document, arguments)
                assert len(installation.pinterest.show()["pins"]) == pins + 1
                print(f"{language}: generated without a warning, type-checked, and published {len(ids)} post(s)")
        finally:
            installation.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
