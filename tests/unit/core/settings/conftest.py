"""Settings from a text and variables."""

import pytest

from socialpub.core.settings import loader
from socialpub.core.settings.loader import Settings, SettingsError


@pytest.fixture
def configured(tmp_path):
    def load(text: str = "", **environ: str) -> Settings:
        file = tmp_path / "config.toml"
        file.write_text(text)
        return loader.load(file, environ)

    return load


@pytest.fixture
def mistakes(configured):
    """Return the message about this text and these variables."""

    def refused(text: str = "", **environ: str) -> str:
        with pytest.raises(SettingsError) as raised:
            configured(text, **environ)
        assert raised.value.hint
        return raised.value.message

    return refused
