"""Swap counties between households of equal size, write the release, and check it as its recipient would.

The table is made here and nobody in it exists; with your own data, pass the path of a file in its place.
"""

import polars as pl

import stirred

rows = [
    {"size": 1 + number % 4, "county": "ABCDE"[number * number % 5], "tenure": "owned" if number % 7 < 4 else "rented"}
    for number in range(2_000)
]
households = pl.DataFrame(rows)

# A plan says what is exchanged (swap), between whom (match), what stays (hold), and how many records move (rate).
plan = stirred.SwapPlan(
    unit="household",
    match=["size"],
    swap=["county"],
    hold=["tenure"],
    rate="1/10",
    chosen_from="public",
    publish=[["county", "tenure"]],
)

# The check reads the data and draws nothing. It is confidential: it is for whoever keeps the data.
check = stirred.check(plan, households)
print(f"Reasons to stop: {len(check.open_stops)}")
print(f"Guarantee: epsilon = {check.specification.budget.shown()}, subject to these counts:")
for invariant in check.specification.multiverse.invariants:
    print(f"  {invariant}")

# The release draws once. Its folder appears whole or not at all.
stirred.release(plan, households, out="release")

# Whoever receives the folder can count again.
print(stirred.verify("release"))
print(pl.from_arrow(stirred.tabulate("release", ["county", "tenure"])))
