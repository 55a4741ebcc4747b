"""What `config.example.toml` promises is what happens without it."""

import re
import tomllib
from pathlib import Path

from socialpub.core.settings import loader
from socialpub.core.settings.loader import KEYS, Settings

EXAMPLE = Path(__file__).parents[1] / "config.example.toml"


def keys_in(values, above=()):
    for name, value in values.items():
        if isinstance(value, dict):
            yield from keys_in(value, (*above, name))
        else:
            yield (*above, name)


def test_the_example_shows_every_key_and_no_other():
    assert set(keys_in(tomllib.loads(EXAMPLE.read_text()))) == set(KEYS)


def test_the_example_shows_the_defaults(tmp_path):
    empty = tmp_path / "config.toml"
    empty.write_text("")
    shown, default = loader.load(EXAMPLE, {}), loader.load(empty, {})
    for key in KEYS:
        if key != ("data_dir",):
            assert value_of(shown, key) == value_of(default, key), key
    assert shown.data_dir == EXAMPLE.parent / "data"
    assert default.data_dir == tmp_path / "data"


def test_every_section_and_the_first_key_of_each_has_a_comment():
    lines = EXAMPLE.read_text().splitlines()
    for number, line in enumerate(lines):
        if line.startswith("[") or line.startswith(("base_url", "listen", "data_dir")):
            near = lines[number - 1 : number + 2]
            assert any("#" in text for text in near), f"line {number + 1}: {line}"


def test_the_variables_in_the_examples_comments_exist():
    named = set(re.findall(r"SOCIALPUB_[A-Z_]*[A-Z](?==)", EXAMPLE.read_text()))
    assert named
    assert named <= {loader.variable_name(key) for key in KEYS}


def test_every_key_says_what_it_accepts():
    assert [key for key, field in KEYS.items() if not field.description] == []


def value_of(found: Settings, key):
    for part in key:
        found = getattr(found, part)
    return found
