"""Data folders as former versions really left them, with posts on their way, and what makes them."""
