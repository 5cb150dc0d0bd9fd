"""A swapper that an audit finds wrong: it exchanges in pairs, and leaves a lone selected record where it is.

Audit it against a plan that matches on size, swaps county and holds tenure at a rate of 5%:

    stirred audit program plan.toml --command "python examples/audit/pairwise_swapper.py {input} {output}" --time 60s
"""

import csv
import random  # noqa: TID251 # this program stands for somebody else's
import sys
from collections import defaultdict
from pathlib import Path


def swapped(rows: list[dict[str, str]], rate: float) -> list[dict[str, str]]:
    """The rows after exchanges of county between pairs of selected records of the same size, in a new order."""
    strata = defaultdict(list)
    for row in rows:
        strata[row["size"]].append(row)
    for records in strata.values():
        chosen = [record for record in records if random.random() < rate]
        random.shuffle(chosen)
        for one, other in zip(chosen[::2], chosen[1::2], strict=False):
            one["county"], other["county"] = other["county"], one["county"]
    random.shuffle(rows)
    return rows


if __name__ == "__main__":
    source, target = sys.argv[1:]
    with Path(source).open(newline="", encoding="utf-8") as file:
        given = list(csv.DictReader(file))
    with Path(target).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(given[0]))
        writer.writeheader()
        writer.writerows(swapped(given, 0.05))
