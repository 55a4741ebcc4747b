"""How fast the appliance is, and how much memory it takes: `make bench`, or `python -m tests.bench --help`.

Machines differ and are shared, so every figure is divided by a yardstick that was measured in the same run, turn by
turn with it. Nothing here passes or fails; it prints a table.
"""
