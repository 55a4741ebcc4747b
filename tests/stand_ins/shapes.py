"""The shapes of JSON bodies. Each network words its findings itself."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError
from pydantic_core import ErrorDetails


class SandboxShape(BaseModel):
    """Strict: no conversion, no field that a shape does not name, no null."""

    model_config = ConfigDict(extra="forbid", strict=True)


Digits = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,19}$")]


def check_shape(shape: type[SandboxShape], body: Any) -> list[ErrorDetails]:
    """Return everything that is wrong with a body. The input of a missing field is an empty text."""
    try:
        shape.model_validate(body)
    except ValidationError as error:
        found = error.errors(include_url=False)
        for one in found:
            one["input"] = "" if one["type"] == "missing" else one["input"]
        return found
    return []


def dotted_path(finding: ErrorDetails) -> str:
    """Return the path of a finding, such as `items[0].link`."""
    return "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in finding["loc"]).removeprefix(".")
