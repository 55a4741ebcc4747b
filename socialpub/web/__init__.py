"""The doors for browsers, and the process that opens all of them."""
