"""The files of a form that has arrived: examined, and stored under names of their own."""

import asyncio
from collections.abc import Sequence

from socialpub.core import ids
from socialpub.core.errors import Unavailable
from socialpub.media import decoder_client
from socialpub.media.types import Facts, MediaRejected
from socialpub.publishing import uploads
from socialpub.publishing.uploads import Examined
from socialpub.runtime import Runtime
from socialpub.web.multipart import FormPart


async def examine(rt: Runtime, parts: Sequence[FormPart], key_id: str) -> list[Facts | MediaRejected]:
    """What each file is, or why it is none that can be used; in turn with what other keys want examined. Raises
    Unavailable."""
    # Every one is waited for, also when one of them fails: a child process may not outlive the file it reads.
    results = await asyncio.gather(*(_examine(rt, part, key_id) for part in parts))
    found: list[Facts | MediaRejected] = []
    for result in results:
        if isinstance(result, Unavailable):
            raise result
        found.append(result)
    return found


async def keep(rt: Runtime, part: FormPart, facts: Facts) -> Examined:
    """Have it on the disk under its own name; `uploads.adopt` makes it stay."""
    assert part.incoming is not None
    artifact_id = ids.new(int(rt.clock.now().timestamp() * 1000))
    storage_key = rt.files.new_key(artifact_id, facts.mime_type)
    await asyncio.to_thread(part.incoming.keep, storage_key)
    declared_type = part.declared or facts.mime_type
    return Examined(artifact_id, part.file_name, declared_type, storage_key, facts, part.incoming)


async def _examine(rt: Runtime, part: FormPart, key_id: str) -> Facts | MediaRejected | Unavailable:
    assert part.incoming is not None
    try:
        limits = uploads.limits(rt.settings)
        return await decoder_client.inspect_file_async(part.incoming.path, part.declared, limits, key_id=key_id)
    except MediaRejected as refused:
        return refused
    except decoder_client.DecoderFailed as error:
        unavailable = Unavailable("The files cannot be examined at the moment. Send the request again.")
        unavailable.__cause__ = error
        return unavailable
