"""The dashboard: the owner's door, in a browser and by session; it calls the same domain functions as the API."""
