"""How fast the appliance is, and how much memory it needs: `make bench`, or `python -m tests.bench --help`.

Machines differ and are shared. So figures are divided by a floor, which is measured in the same run in alternation. The
table shows which targets are met. A missed target does not fail the run.
"""
