"""Clients that nobody wrote: generated from the document of a running appliance, and used by programs as a caller's."""
