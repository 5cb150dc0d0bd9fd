"""Release a small generated census with TopDown, then estimate its true counts from the noisy measurements.

The released tables are whole numbers that add up; the estimates are unbiased and come with intervals.
"""

import stirred
from stirred.tables.synthetic.population import DOMAINS, Population

# Blocks, and the persons who live in them. All are invented, so the truth can be printed below.
census = Population(persons=12_000, seed=4).tables()
data = {"geography": census.blocks, "persons": census.persons}

# A small plan for teaching: a few queries at each level of the geography.
plan = stirred.topdown.preset("teaching", DOMAINS, chosen_from="public")
print(f"rho = {plan.rho}, protects a {plan.unit}")

made = stirred.release(plan, data, out="release")
print("verified:", all(verdict.holds for verdict in stirred.verify("release")))

tracts = stirred.estimate("release", ["adult"], level="tract")
released = made.counts("persons", "tract", ("adult",))
lower, upper = tracts.interval()
persons = census.persons.join(census.blocks.select("block", "tract"), on="block")

print(f"{'tract':>12} {'adult':>6} {'true':>6} {'released':>9} {'estimate':>9} {'95% interval':>15}")
for place, tract in enumerate(tracts.places):
    for group, (adult,) in enumerate(tracts.labels):
        true = persons.filter(tract=tract, adult=adult).height
        interval = f"{lower[place, group]:.0f} to {upper[place, group]:.0f}"
        print(
            f"{tract:>12} {adult:>6} {true:>6} {released[place, group]:>9} "
            f"{tracts.values[place, group]:>9.1f} {interval:>15}"
        )
