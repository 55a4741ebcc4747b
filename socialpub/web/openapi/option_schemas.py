"""The options of each network as schemas, made from the tables that the adapters read them by (contract section 6).

They describe what a network takes and stay open: whatever else is sent is accepted with the post, and a wrong option
fails its delivery instead of the request (`POST /posts/validate` says so before).
"""

from typing import Any

from socialpub.providers.options import Option, OptionType, Table
from socialpub.providers.registry import LABELS, OPTIONS
from socialpub.web.openapi.operations import EXAMPLES


def component(provider: str) -> str:
    """The name of a network's options in the document."""
    return f"{LABELS[provider]}Options"


def option_schemas() -> dict[str, dict[str, Any]]:
    """Every network's options, by component."""
    return {
        component(provider): {**_schema(LABELS[provider], table), "examples": [EXAMPLES["options"][provider]]}
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
