"""Bash completes the commands and their options."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

COMPLETE = """
eval "$(socialpub completion bash)"
complete -p socialpub
for words in "$@"; do
    COMP_WORDS=($words) COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
    _socialpub_completion socialpub 2>/dev/null
    echo "${COMPREPLY[*]}"
done
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_commands_and_options(tmp_path):
    program = tmp_path / "socialpub"
    program.write_text(f"#!{sys.executable}\nfrom socialpub.cli.main import main\nmain(prog_name='socialpub')\n")
    program.chmod(0o755)
    root = str(Path(__file__).parents[3])
    environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": root}
    words = ["bash", "-c", COMPLETE, "bash", "socialpub pr", "socialpub post --no-"]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1:] == ["profiles", "--no-wait --no-strict"], done.stderr
