"""The dashboard: the owner's entry point in a browser. It calls the same domain functions as the API."""
