"""The endpoints of the API, each: shape, do, render."""
