"""`/metrics`: Prometheus text (contract 1.13). Numbers are read when they are asked for; nothing is counted twice."""

import hmac

from socialpub.runtime import Runtime
from socialpub.web.answer import Answer
from socialpub.web.authentication import unauthorized, wrong
from socialpub.web.endpoint import endpoint
from socialpub.web.request import Request


@endpoint(scope=None)
async def show(rt: Runtime, caller: None, request: Request) -> Answer:  # noqa: ARG001
    """The metrics, for those who have their token if one is set."""
    expected = rt.settings.metrics.token.get_secret_value()
    if expected:
        header = request.headers.get(b"authorization")
        if header is None:
            raise unauthorized("Send the token of [metrics]: Authorization: Bearer <TOKEN>.")
        scheme, _, token = header.partition(b" ")
        if scheme.lower() != b"bearer" or not hmac.compare_digest(token.strip(), expected.encode()):
            raise wrong(request, "This is not the token of [metrics].")
    # prometheus-client costs memory: only an appliance whose metrics are read pays for it.
    from socialpub.web.api import metric_families

    text, content_type = await rt.read_aside(lambda reader: metric_families.render(request.state, reader))
    return Answer(200, text, content_type=content_type)
