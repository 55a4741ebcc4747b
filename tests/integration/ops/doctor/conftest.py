from typing import Any

import pytest

from socialpub.runtime import Runtime
from tests.support.doctor import HERE, NETWORKS, AnsweringHttp, shows
from tests.support.scripted_network import ScriptedNetwork


@pytest.fixture
def http() -> AnsweringHttp:
    return AnsweringHttp()


@pytest.fixture
def appliance_options(three_networks: dict[str, ScriptedNetwork], http: AnsweringHttp) -> dict[str, Any]:
    return {"providers": three_networks, "networks": NETWORKS, "http": http}


@pytest.fixture
def rt(rt: Runtime, http: AnsweringHttp) -> Runtime:
    """An appliance with a responding web server and a worker."""
    http.answers[f"{HERE}/healthz"] = shows(rt.instance_id)
    rt.db.write(lambda tx: tx.execute_sql("INSERT INTO appliance VALUES ('heartbeat', ?)", (tx.stamp,)).rowcount)
    return rt
