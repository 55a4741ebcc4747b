"""Commands for scripts and agents with a shell: they call an appliance over HTTP and import nothing of it."""
