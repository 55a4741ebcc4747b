"""The words that the API uses for states and kinds, each with its meaning: components of the OpenAPI document, so that
a generated client has one type for each of them.
"""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

Provider = TypeAliasType(
    "Provider",
    Annotated[
        Literal["x", "tiktok", "pinterest"],
        Field(description="A network: `x` is X, `tiktok` is TikTok, `pinterest` is Pinterest."),
    ],
)

ProfileStatus = TypeAliasType(
    "ProfileStatus",
    Annotated[
        Literal["active", "reauthRequired", "disconnected"],
        Field(
            description="`active`: usable. `reauthRequired`: the network refuses its tokens; its owner connects the "
            "same account again, and what comes due waits for that. `disconnected`: for good, nothing is sent any more."
        ),
    ],
)

PostStatus = TypeAliasType(
    "PostStatus",
    Annotated[
        Literal["pending", "settled", "canceled", "scheduled"],
        Field(
            description="`pending`: accepted, and not every delivery has its outcome. `settled`: every delivery has "
            "one. `canceled`: stopped before any delivery ran. `scheduled`: waits for its time; can be changed and "
            "canceled."
        ),
    ],
)

DeliveryStatus = TypeAliasType(
    "DeliveryStatus",
    Annotated[
        Literal["pending", "published", "failed", "canceled"],
        Field(
            description="`pending`: waits for its time, runs, or waits for its network; the attempts say for what. "
            "`published`: exactly one post is up. `failed`: nothing was posted, and `errorMessage` says what to "
            "change, or it begins with `Outcome unknown:` and says where to look. `canceled`: stopped with its post."
        ),
    ],
)

DeliveryOutcome = TypeAliasType(
    "DeliveryOutcome",
    Annotated[
        Literal["pending", "published", "failed", "unknown", "canceled"],
        Field(
            description="What became of a delivery, as lists of posts are filtered by it. `pending`: it has no outcome "
            "yet. `published`: exactly one post is up. `failed`: nothing was posted. `unknown`: it failed with "
            "`Outcome unknown:`, and may be public all the same. `canceled`: stopped with its post."
        ),
    ],
)

ArtifactStatus = TypeAliasType(
    "ArtifactStatus",
    Annotated[
        Literal["reserved", "verified", "rejected"],
        Field(
            description="`reserved`: an id, and room for the bytes. `verified`: examined, and usable in posts. "
            "`rejected`: examined and refused; its bytes are gone."
        ),
    ],
)

MediaKind = TypeAliasType(
    "MediaKind",
    Annotated[
        Literal["image", "video"],
        Field(description="What the bytes were found to be: `image` (an animated one, too) or `video`."),
    ],
)

AttemptOutcome = TypeAliasType(
    "AttemptOutcome",
    Annotated[
        Literal["done", "waiting", "held", "retrying", "refused", "unknown", "published"],
        Field(
            description="`done`: the step is finished, the next one follows. `waiting`: the network wants time, until "
            "`nextAt`. `held`: nothing is sent until somebody acts, as `message` says. `retrying`: it failed in "
            "passing and is tried again at `nextAt`. `refused`: the network said no. `unknown`: no answer tells how "
            "the call ended; the account is looked at before anything is sent again. `published`: the post is up."
        ),
    ],
)
