"""Programs that use clients generated from the OpenAPI document of a running appliance."""
