"""The fields of a form or of an address, their errors, and addresses to return to.

Every field is text. A box that is not ticked is absent.
"""

from collections.abc import Sequence
from urllib.parse import parse_qsl

from socialpub.core.errors import InvalidRequest

URLENCODED = b"application/x-www-form-urlencoded"
MAX_FIELDS = 1000
MAX_ADDRESS_LETTERS = 2000


class Form:
    """The fields in their order; a name may occur several times."""

    def __init__(self, fields: Sequence[tuple[str, str]] = ()) -> None:
        self.fields = tuple(fields)

    @classmethod
    def read(cls, body: bytes) -> "Form":
        """Read a body or a query. Raises InvalidRequest."""
        try:
            text = body.decode("ascii")
            return cls(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS))
        except ValueError:
            raise InvalidRequest.at(message="This is no form that a browser makes.") from None

    def text(self, name: str, default: str = "") -> str:
        """Return the last value of this name, with line ends as we store them."""
        found = self.texts(name)
        return found[-1] if found else default

    def texts(self, name: str) -> list[str]:
        return [value.replace("\r\n", "\n") for key, value in self.fields if key == name]

    def number(self, name: str, max_digits: int = 7) -> int | None:
        """Return the whole number of the field; None for anything else."""
        text = self.text(name).strip()
        return int(text) if text.isascii() and text.isdecimal() and len(text) <= max_digits else None

    def ticked(self, name: str) -> bool:
        return bool(self.texts(name))


def field_errors(error: InvalidRequest) -> dict[str, str]:
    """Return a sentence for each wrong field, by its name."""
    return {str(item.path[0]): item.sentence for item in error.errors if item.path}


def local_path(path: str, default: str) -> str:
    """Return the path if it is an address of ours (`/posts?status=scheduled`), otherwise the default."""
    misleading = "//" in path or "\\" in path or not path.isprintable() or len(path) > MAX_ADDRESS_LETTERS
    return path if path.startswith("/") and not misleading else default
