"""The simulation of networks whose every behaviour is drawn: `make simulate`, and a short one in the test suite.

Everything comes from one seed, so that a run can be repeated. An episode is a fresh appliance and a fresh world; the
engine and the adapters are the real ones, the clock is moved by hand, and a judge who knows the networks' own memory
says at the end whether every outcome was true. Most episodes also have a restore story: backups and rollbacks bring
former states back over the same world, the original goes on after its backup, and the owner acts on all of them.
"""
