"""The shapes of JSON bodies. They are strict: no conversion, no field that a shape does not name, no null.

Each network words its findings in its own way.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError


class SandboxShape(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


Digits = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,19}$")]


@dataclass(frozen=True, slots=True)
class ShapeFinding:
    path: tuple[str | int, ...]
    value: Any
    """Empty for a missing field."""
    kind: str
    """Pydantic's name for it, such as `missing`."""
    message: str
    context: dict[str, Any] = field(default_factory=dict)

    @property
    def dotted(self) -> str:
        """`items[0].link`"""
        return "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in self.path).removeprefix(".")


def check(shape: type[SandboxShape], body: Any) -> list[ShapeFinding]:
    """Return everything that is wrong with a body."""
    try:
        shape.model_validate(body)
    except ValidationError as error:
        return [
            ShapeFinding(
                one["loc"],
                "" if one["type"] == "missing" else one["input"],
                one["type"],
                one["msg"],
                one.get("ctx", {}),
            )
            for one in error.errors(include_url=False)
        ]
    return []
