"""Chaos tests of the real processes: `make chaos`, and a small version among the e2e tests.

Callers of all kinds load the real web and worker processes. The processes are killed and suspended, and the sandbox
fails at random. At the end, the answers to the callers, the data of the appliance and the counts of the sandbox are
compared.
"""
