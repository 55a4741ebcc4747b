"""The named parts of the OpenAPI document: schemas, options of each network, headers, authentication."""

from collections.abc import Iterable
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from socialpub.providers.options import Option, OptionType, Table
from socialpub.providers.registry import LABELS, OPTIONS
from socialpub.web.http.endpoint import Endpoint
from socialpub.web.http.shapes import Shape
from socialpub.web.openapi.operations import EXAMPLES, Operation
from socialpub.web.openapi.schemas import ProblemSchema

# --- options ---------------------------------------------------------------------------------------------------------


def option_component(provider: str) -> str:
    """The name of a network's options in the document."""
    return f"{LABELS[provider]}Options"


def option_schemas() -> dict[str, dict[str, Any]]:
    """Every network's options, by component."""
    return {
        option_component(provider): {**_schema(LABELS[provider], table), "examples": [EXAMPLES["options"][provider]]}
        for provider, table in OPTIONS.items()
    }


def _schema(label: str, table: Table) -> dict[str, Any]:
    respelt = next(option for option in table if option.snake_name != option.name)
    return {
        "type": "object",
        "description": f"Options for {label}. Every key may be written in snake_case as well "
        f"(`{respelt.snake_name}`). `null` stands for a key that is not given, which takes back what is stored with "
        "the profile. An unknown key or a wrong value fails the delivery; `POST /posts/validate` finds it before.",
        "properties": {option.name: _option(option) for option in table},
        "additionalProperties": True,
    }


def _option(option: Option) -> dict[str, Any]:
    # A default stands in the words alone: generators send what `default` says with every post, and it would win over
    # what the owner has stored with the profile.
    words = option.meaning if option.default is None else f"{option.meaning} Default: `{_json(option.default)}`."
    return {**_value(option), "description": words}


def _value(option: Option) -> dict[str, Any]:
    match option.type:
        case OptionType.BOOLEAN:
            return {"type": "boolean"}
        case OptionType.INTEGER:
            return {"type": "integer", "minimum": option.minimum, **_limit("maximum", option)}
        case OptionType.TEXT:
            return {"type": "string", "pattern": r"\S", **_limit("maxLength", option)}
        case OptionType.DIGITS:
            return {"type": "string", "pattern": "^[0-9]+$", **_limit("maxLength", option)}
        case OptionType.LINK:
            return {"type": "string", "pattern": r"^[Hh][Tt][Tt][Pp][Ss]?://\S+$", **_limit("maxLength", option)}
        case OptionType.COLOUR:
            return {"type": "string", "pattern": "^#[0-9A-Fa-f]{6}$"}
        case OptionType.CHOICE:
            return {"type": "string", "enum": list(option.values)}
        case OptionType.CHOICES:
            items = {"type": "string", "enum": list(option.values)}
            return {"type": "array", "items": items, "minItems": 1, "uniqueItems": True}
        case OptionType.ARTIFACT:
            return {"type": "string", "format": "uuid"}


def _limit(name: str, option: Option) -> dict[str, int]:
    return {} if option.maximum is None else {name: option.maximum}


def _json(value: bool | int | str) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# --- components ------------------------------------------------------------------------------------------------------

PREFIX = "#/components/schemas/"
FORM = "PostForm"
"""The component of a post that comes as a form."""

SECURITY_SCHEME = {
    "type": "http",
    "scheme": "bearer",
    "bearerFormat": "spk_<id>_<secret>",
    "description": "`Authorization: Bearer <API_KEY>`, with a key that the owner made in the dashboard, under "
    "Keys, or by `socialpub admin create-key`",
}


def _header(description: str, **schema: Any) -> dict[str, Any]:
    return {"description": description, "schema": {"type": "string", **schema}}


_WHOLE = {"type": "integer", "minimum": 0}
HEADERS: dict[str, Any] = {
    "X-Request-Id": _header("This request's id, also in the log; the caller's own when it sent one"),
    "RateLimit-Limit": _header("Requests a minute that this key may send", **_WHOLE),
    "RateLimit-Remaining": _header("How many of them are left", **_WHOLE),
    "RateLimit-Reset": _header("Seconds until all of them are available again", **_WHOLE),
    "Retry-After": _header("Seconds to wait before the next try", **_WHOLE),
    "Location": _header("Where the new post is", format="uri"),
    "Idempotency-Replayed": _header("`true` when this is the first answer again", enum=["true"]),
    "WWW-Authenticate": _header("How to say who you are: `Bearer`", enum=["Bearer"]),
    "Allow": _header("The methods that this address supports"),
}


def ref(shape: type[Shape]) -> dict[str, str]:
    """A reference to a shape's component: `PostSchema` is called `Post` in the document."""
    return {"$ref": PREFIX + _component(shape.__name__)}


def schemas(described: Iterable[tuple[Endpoint, Operation]]) -> dict[str, Any]:
    """Every schema by its component, those of the queries included."""
    shapes: list[type[Shape]] = [ProblemSchema]
    forms: list[type[Shape]] = []
    for target, operation in described:
        forms += [target.form.shape] if target.form else []
        answers = (shape for _, shape, _ in operation.answers.values())
        shapes += [shape for shape in (target.body, target.query, *forms, *answers) if shape is not None]
    _, schema = models_json_schema(
        [(shape, "validation") for shape in dict.fromkeys(shapes)],
        ref_template=PREFIX + "{model}",
        schema_generator=_ComponentNames,
    )
    found: dict[str, Any] = {**_cleaned(schema["$defs"]), **option_schemas(), FORM: _form(forms[0])}
    for provider, field in found["ProviderOptions"]["properties"].items():
        found["ProviderOptions"]["properties"][provider] = {
            "$ref": PREFIX + option_component(provider),
            "description": field["description"],
        }
    return dict(sorted(found.items()))


_FILE_PART = (
    "The bytes of a file. A part declared `application/octet-stream`, or not declared, counts as what it is found to be"
)


def _form(payload: type[Shape]) -> dict[str, Any]:
    return {
        "type": "object",
        "description": "A post with its files: the text field `payload`, and one part per file, named as "
        "`media[].fileField` says",
        "required": ["payload"],
        "properties": {"payload": {**ref(payload), "description": "The post, as JSON"}},
        "additionalProperties": {"type": "string", "format": "binary", "description": _FILE_PART},
    }


class _ComponentNames(GenerateJsonSchema):
    def normalize_name(self, name: str) -> str:
        return _component(super().normalize_name(name))


def _component(name: str) -> str:
    return name.removesuffix("Schema")


def _cleaned(schema: Any) -> Any:
    """Without what the library adds for itself: titles, and a null as the default of what may be left out."""
    if isinstance(schema, list):
        return [_cleaned(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: {key: _cleaned(item) for key, item in value.items()} if name == "properties" else _cleaned(value)
        for name, value in schema.items()
        if not (name == "title" and isinstance(value, str)) and not (name == "default" and value is None)
    }
