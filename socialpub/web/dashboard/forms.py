"""What a form of the dashboard brought, and what is wrong with it.

Every field is text; a box that was not ticked is not there.
"""

from collections.abc import Sequence
from urllib.parse import parse_qsl

from socialpub.core.errors import InvalidRequest

URLENCODED = b"application/x-www-form-urlencoded"
MOST_FIELDS = 1000


class Form:
    """The fields in their order; a name may come several times."""

    def __init__(self, fields: Sequence[tuple[str, str]] = ()) -> None:
        self.fields = tuple(fields)

    @classmethod
    def read(cls, body: bytes) -> "Form":
        """Of a body or a query. Raises InvalidRequest when it is no form."""
        try:
            text = body.decode("ascii")
            return cls(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS))
        except ValueError:
            raise InvalidRequest.at(message="This is no form that a browser makes.") from None

    def text(self, name: str, default: str = "") -> str:
        """The last value of this name, with line ends as we store them."""
        found = self.texts(name)
        return found[-1] if found else default

    def texts(self, name: str) -> list[str]:
        return [value.replace("\r\n", "\n") for key, value in self.fields if key == name]

    def number(self, name: str, most_digits: int = 7) -> int | None:
        """The whole number that the field holds; None for anything else."""
        text = self.text(name).strip()
        return int(text) if text.isascii() and text.isdecimal() and len(text) <= most_digits else None

    def ticked(self, name: str) -> bool:
        return bool(self.texts(name))

    def names(self, prefix: str) -> list[str]:
        """Which names begin so, each once, in their order."""
        return list(dict.fromkeys(key for key, _ in self.fields if key.startswith(prefix)))


def field_errors(error: InvalidRequest) -> dict[str, str]:
    """What is wrong, by the name of the field that it is shown at."""
    return {str(item.path[0]): item.sentence for item in error.errors if item.path}
