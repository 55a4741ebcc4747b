import pytest

from socialpub.core import clock as clocks
from socialpub.runtime import Runtime
from tests.support.appliance import add_profile

TWO_HOURS = 7200


@pytest.fixture
def profile(rt: Runtime) -> str:
    """Connected with a pair whose access token lasts two hours."""
    return add_profile(rt, access_expires_at=clocks.after(rt.stamp(), TWO_HOURS))
