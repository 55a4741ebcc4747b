"""The same appliance as in the stories of the integration."""

from tests.integration.conftest import (
    appliance_folder,
    appliance_options,
    network,
    profile,
    rt,
    sandbox_options,
    three_networks,
)

__all__ = ["appliance_folder", "appliance_options", "network", "profile", "rt", "sandbox_options", "three_networks"]
