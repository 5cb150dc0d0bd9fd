"""Keep a ledger of all releases of one dataset, with a limit that no release can pass.

The entry is on disk before the release appears, so what was spent is never forgotten.
"""

import stirred
from stirred.tables.synthetic.population import DOMAINS, Population

DATASET = "a generated county"
census = Population(persons=1_000, seed=5).tables()
data = {"geography": census.blocks, "persons": census.persons}

plan = stirred.topdown.preset("teaching", DOMAINS, dataset=DATASET, chosen_from="public")
print(f"Each release of this plan spends rho = {plan.rho}.")

# The limit is a guarantee too: that of the plan, at another budget.
limit = stirred.topdown.specify(plan).flavor.at(1)
ledger = stirred.Ledger.create("county.ledger", DATASET, limit)
print(ledger.standing())

stirred.release(plan, data, out="first", ledger=ledger)
print(ledger.standing())

try:
    stirred.release(plan, data, out="second", ledger=ledger)
except stirred.StirredError as refusal:
    print(f"Refused: {refusal}")

for entry in ledger.entries():
    print(f"entry {entry.id}: {entry.what}")
for verdict in ledger.verify():
    print("holds" if verdict.holds else "FAILS", verdict.words)
