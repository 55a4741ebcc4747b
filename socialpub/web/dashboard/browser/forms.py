"""The fields of a form or of an address, what is wrong with them, and addresses to return to."""

from collections.abc import Sequence
from urllib.parse import parse_qsl

from socialpub.core.errors import InvalidRequest

# MERGED from web/dashboard/forms.py: What a form of the dashboard brought, and what is wrong with it.

URLENCODED = b"application/x-www-form-urlencoded"
MAX_FIELDS = 1000


class Form:
    """The fields in their order; a name may come several times."""

    def __init__(self, fields: Sequence[tuple[str, str]] = ()) -> None:
        self.fields = tuple(fields)

    @classmethod
    def read(cls, body: bytes) -> "Form":
        """Of a body or a query. Raises InvalidRequest when it is no form."""
        try:
            text = body.decode("ascii")
            return cls(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS))
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


# MERGED from web/dashboard/addresses.py: Addresses within the dashboard that a browser brings along, to be led bac

MAX_ADDRESS_LETTERS = 2000


def is_local(path: str) -> bool:
    """Whether this is an address of ours (`/posts?status=scheduled`)."""
    misleading = "//" in path or "\\" in path or not path.isprintable() or len(path) > MAX_ADDRESS_LETTERS
    return path.startswith("/") and not misleading
