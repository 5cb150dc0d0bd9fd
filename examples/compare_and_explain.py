"""Compare guarantees block by block, criticise one, and say what it means for a single person.

No data are needed: a guarantee is five building blocks, and known deployments come with the package.
"""

import stirred

# Two guarantees of different kinds: an epsilon and a rho cannot be compared as numbers, but as guarantees they can.
comparison = stirred.compare("epsilon=1/2", "rho=1/8")
print(comparison.verdicts[0].words)

# The 2020 Census: all products of its disclosure avoidance system together.
census = stirred.read("das-2020-overall")
print(f"\n2020 Census: rho = {census.budget.shown()}, protects a {census.input_premetric.unit}. It keeps fixed:")
for invariant in census.multiverse.invariants:
    print(f"  {invariant}")

# What to doubt about it.
print("\nDoubts:", ", ".join(finding.id for finding in stirred.lint(census)))

# What a test can find out: of two datasets that differ in one person, which is the true one?
explanation = stirred.explain("rho=1/8", false_alarms=[0.01, 0.05])
print(f"\n{explanation.statement('tests.bound').words}")

# The whole explanation is a page of text. Each of its sentences names its source, and its formula if it has numbers.
for statement in explanation.section("exposed"):
    print(f"\n{statement.words}\n  [{statement.source}]")
