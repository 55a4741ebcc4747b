"""Hard times for the real processes: `make chaos`, and a small edition among the e2e tests.

Callers of all kinds load the real web and worker processes, which are killed and suspended all the time, while the
networks, played by the real sandbox, fail at random. At the end everything that a caller was told is compared with what
the appliance shows and with what the sandbox itself has counted.
"""
