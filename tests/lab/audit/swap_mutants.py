"""Swapping programs that break the law of Algorithm 3.2.1, each in one way; and one that keeps it.

All are of the form that audits take: tables in, tables out, for plans that match on "size", swap "county", hold
"tenure" and may have the id "household". ``swapper`` puts them together from how records are selected, how their values
are permuted, and how rows are put in order.
"""

from __future__ import annotations

import numba
import numpy as np
import polars as pl

from stirred.lab.audit.swap_audit import plan_program
from stirred.noise import SeededSource

MATCH, SWAP, HOLD, ID = "size", "county", "tenure", "household"


class Strata:
    """The records of a file, sorted by stratum."""

    def __init__(self, size):
        self.order = np.argsort(size, kind="stable")
        self.of = size[self.order]
        self.sizes = np.bincount(self.of)
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)])
        self.offset = np.arange(len(size)) - self.starts[:-1][self.of]

    def counts(self, selected):
        return np.bincount(self.of[selected], minlength=len(self.sizes))

    def rows(self, some):
        """The records of some strata."""
        sizes = self.sizes[some]
        ends = np.cumsum(sizes)
        return np.arange(ends[-1]) + np.repeat(self.starts[:-1][some] - ends + sizes, sizes)


# -- who is selected -----------------------------------------------------------------------------------------


def plainly(strata, rate, rng):
    return rng.random(len(strata.of)) < rate


def afresh(strata, rate, rng):
    """As it should be."""
    selected = plainly(strata, rate, rng) & (strata.sizes[strata.of] > 1)
    while len(again := np.flatnonzero(strata.counts(selected) == 1)):
        rows = strata.rows(again)
        selected[rows] = rng.random(len(rows)) < rate
    return selected


def lone_dropped(strata, rate, rng):
    selected = plainly(strata, rate, rng)
    return selected & (strata.counts(selected)[strata.of] > 1)


def lone_kept(strata, rate, rng):
    """The others are selected again until one of them is."""
    selected = plainly(strata, rate, rng) & (strata.sizes[strata.of] > 1)
    lone = selected & (strata.counts(selected)[strata.of] == 1)
    while len(again := np.flatnonzero(strata.counts(selected) == 1)):
        rows = strata.rows(again)
        rows = rows[~lone[rows]]
        selected[rows] = rng.random(len(rows)) < rate
    return selected


def lone_partnered(strata, rate, rng):
    selected = plainly(strata, rate, rng) & (strata.sizes[strata.of] > 1)
    lone = np.flatnonzero(selected & (strata.counts(selected)[strata.of] == 1))
    stratum = strata.of[lone]
    partner = (strata.offset[lone] + 1 + rng.integers(0, strata.sizes[stratum] - 1)) % strata.sizes[stratum]
    selected[strata.starts[stratum] + partner] = True
    return selected


def fixed_in_stratum(strata, rate, rng):
    """The expected number, rounded; none where that is one."""
    number = np.round(strata.sizes * rate)
    number[number < 2] = 0
    rank = np.empty(len(strata.of), dtype=np.int64)
    rank[np.lexsort((rng.random(len(strata.of)), strata.of))] = strata.offset
    return rank < number[strata.of]


def fixed_in_file(strata, rate, rng):
    """As it should be, but in the largest strata some are added or left out until the number is the expected one."""
    selected = afresh(strata, rate, rng)
    surplus = int(selected.sum()) - round(rate * len(selected))
    largest = strata.sizes[strata.of] == strata.sizes.max()
    candidates = np.flatnonzero(largest & (selected if surplus > 0 else ~selected))
    selected[rng.choice(candidates, abs(surplus), replace=False)] = surplus < 0
    return selected


def even_number(strata, rate, rng):
    """One is left out where the number is odd, so that all can exchange in pairs."""
    selected = plainly(strata, rate, rng)
    odd = np.flatnonzero(strata.counts(selected) % 2)
    rows = strata.rows(odd)
    rows = rng.permutation(rows[selected[rows]])
    _, first = np.unique(strata.of[rows], return_index=True)
    selected[rows[first]] = False
    return selected


# -- where their values go -----------------------------------------------------------------------------------


def deranged(group, starts, rng):
    """As it should be: permutations are drawn until one leaves none in place."""
    giver = np.arange(len(group))
    left = np.arange(len(group))
    while len(left):
        giver[left] = left[np.lexsort((rng.random(len(left)), group[left]))]
        stuck = np.unique(group[left][giver[left] == left])
        left = left[np.isin(group[left], stuck)]
    return giver


def in_a_circle(group, starts, rng):
    """Each gives to the next, in a random order."""
    order = np.lexsort((rng.random(len(group)), group))
    following = np.arange(1, len(group) + 1)
    following[starts[1:] - 1] = starts[:-1]
    giver = np.empty(len(group), dtype=np.int64)
    giver[order] = order[following]
    return giver


def in_pairs(group, starts, rng):
    order = np.lexsort((rng.random(len(group)), group))
    giver = np.empty(len(group), dtype=np.int64)
    giver[order[::2]], giver[order[1::2]] = order[1::2], order[::2]
    return giver


def with_biased_integers(bias, from_top=True, of_givers=True):
    """Fisher and Yates until none is in place; integers of the lower half are this much likelier than they should be.

    Positions are filled from the top or from the bottom, with givers or with receivers.
    """

    def arrange(group, starts, rng):
        found = np.empty(len(group), dtype=np.int64)
        _shuffle(starts, bias, rng, found)
        places = np.arange(len(group))
        if not from_top:
            turned = (starts[:-1] + starts[1:])[group] - 1 - places
            found = turned[found[turned]]
        if not of_givers:
            found[found] = places.copy()
        return found

    return arrange


def with_bytes_modulo(group, starts, rng):
    """Integers below n are a random byte modulo n: a bias wherever 256 is not a multiple of n."""
    found = np.empty(len(group), dtype=np.int64)
    _shuffle(starts, -1.0, rng, found)
    return found


@numba.njit(nogil=True)
def _shuffle(starts, bias, rng, giver):
    for g in range(len(starts) - 1):
        start = starts[g]
        k = starts[g + 1] - start
        while True:
            for i in range(k):
                giver[start + i] = start + i
            fixed = False
            for i in range(k - 1, 0, -1):
                j = _biased_integer(i + 1, bias, rng)
                giver[start + i], giver[start + j] = giver[start + j], giver[start + i]
                if giver[start + i] == start + i:
                    fixed = True
                    break
            if not fixed and giver[start] != start:
                break


@numba.njit(nogil=True)
def _biased_integer(bound, bias, rng):
    if bias < 0:
        return int(rng.random() * 256) % bound
    half = bound // 2
    if rng.random() < half / bound * (1 + bias):
        return int(rng.random() * half)
    return half + int(rng.random() * (bound - half))


def alike_in_equal_strata(strata, rate, rng, one_seed=False):
    """One permutation for all strata of a size; with ``one_seed`` all strata begin with the same random numbers."""
    giver = np.arange(len(strata.of))
    seed = int(rng.integers(1 << 62))
    for size in np.unique(strata.sizes[strata.sizes > 1]):
        own = np.random.default_rng(seed if one_seed else [seed, int(size)])
        one = Strata(np.zeros(size, dtype=np.int64))
        chosen = np.flatnonzero(afresh(one, rate, own))
        outcome = np.arange(size)
        outcome[chosen] = chosen[deranged(np.zeros(len(chosen), dtype=np.int64), np.array([0, len(chosen)]), own)]
        rows = np.flatnonzero(strata.sizes[strata.of] == size)
        giver[rows] = strata.starts[:-1][strata.of[rows]] + outcome[strata.offset[rows]]
    return giver


# -- the order of rows, and programs -------------------------------------------------------------------------


def shuffled(before, after, rng):
    return np.argsort(rng.random(after.height))


def sorted_by_values(before, after, rng):
    return after.select(pl.arg_sort_by([MATCH, HOLD, SWAP])).to_series().to_numpy()


def as_in_the_input(before, after, rng):
    return np.arange(after.height)


def sorted_by_stratum(before, after, rng):
    return np.argsort(after[MATCH].to_numpy(), kind="stable")


def sorted_before_swapping(before, after, rng):
    return before.select(pl.arg_sort_by([MATCH, SWAP])).to_series().to_numpy()


def moved_last(before, after, rng):
    order = rng.permutation(after.height)
    moved = (before[SWAP] != after[SWAP]).to_numpy()
    return np.concatenate([order[~moved[order]], order[moved[order]]])


def new_ids(order, before, rng):
    return np.arange(1, len(order) + 1)


def old_ids(order, before, rng):
    return before[ID].to_numpy()[order]


def ids_in_input_order(order, before, rng):
    return order + 1


def swapper(rate, seed, select=afresh, arrange=deranged, order=shuffled, ids=new_ids, whole=None, repeat=False):
    """A program. ``whole`` replaces selecting and arranging; ``repeat`` begins every run with the same seed."""
    state = {"rng": np.random.default_rng(seed), "frame": None}

    def program(tables):
        frame = tables["records"]
        if state["frame"] is not frame:
            state["frame"], state["strata"] = frame, Strata(frame[MATCH].to_numpy())
        strata = state["strata"]
        rng = np.random.default_rng(seed) if repeat else state["rng"]
        if whole is not None:
            giver = whole(strata, rate, rng)
        else:
            selected = np.flatnonzero(select(strata, rate, rng))
            _, group, counts = np.unique(strata.of[selected], return_inverse=True, return_counts=True)
            starts = np.concatenate([[0], np.cumsum(counts)])
            giver = np.arange(len(strata.of))
            giver[selected] = selected[arrange(group, starts, rng)]
        county = frame[SWAP].to_numpy().copy()
        county[strata.order] = frame[SWAP].to_numpy()[strata.order][giver]
        after = frame.with_columns(pl.Series(SWAP, county))
        rows = order(frame, after, rng)
        released = after[rows]
        if ID in frame.columns:
            released = released.with_columns(pl.Series(ID, ids(rows, frame, rng)))
        return {"records": released}

    return program


# -- rules, merged values and rounds -------------------------------------------------------------------------


def of_another_plan(plan, seed, **changes):
    """What this package draws for a plan that differs a little: a rule, a merging or a round is not as stated."""
    fields = {"rate": plan.rate, "rates": plan.rates, "rounds": plan.rounds, "coarsen": plan.coarsen} | changes
    return plan_program(plan.model_copy(update=fields), SeededSource(seed))


def drawn_again_where_nothing_moved(plan, seed):
    """An area in which nobody moved, all rounds together, is drawn once more."""
    own = plan_program(plan, SeededSource(seed))
    area, columns = plan.match[0], [*plan.match, *plan.hold, *plan.swap]

    def program(tables):
        first, second = (own(tables)["records"] for _ in range(2))
        kept = first.join(tables["records"].select(columns), on=columns, how="anti").select(area).unique()
        parts = first.join(kept, on=area, how="semi"), second.join(kept, on=area, how="anti")
        return {"records": pl.concat(parts).sample(fraction=1.0, shuffle=True, seed=seed)}

    return program


def in_large_strata_only(fault, plan, seed):
    """A fault that small strata do not show: in a file without any of more than five records nothing is wrong."""
    wrong, right = fault(plan, seed), plan_program(plan, SeededSource(seed))
    area = plan.match[0]

    def program(tables):
        return (wrong if tables["records"][area].value_counts()["count"].max() > 5 else right)(tables)

    return program


def rows_as_in_the_input(plan, seed):
    """Released records stand where those with their match and held values stood."""
    own = plan_program(plan, SeededSource(seed))
    kept = [*plan.match, *plan.hold]

    def program(tables):
        released = dict(own(tables))
        places = tables["records"].select(kept).unique(keep="first", maintain_order=True).with_row_index("place")
        released["records"] = released["records"].join(places, on=kept, how="left").sort("place").drop("place")
        return released

    return program


def persons_left_behind(plan, seed):
    """Persons stay where they were, with whoever has the swap values of their household now."""
    own = plan_program(plan, SeededSource(seed))
    entry, place = plan.linked[0], [plan.match[0], *plan.swap]

    def program(tables):
        released = dict(own(tables))
        now = released["records"].select(*place, pl.col(plan.id).alias("now"))
        here = tables["records"].select(*place, pl.col(plan.id).alias(entry.link)).join(now, on=place)
        rows = tables[entry.name].join(here.select(entry.link, "now"), on=entry.link)
        rows = rows.with_columns(pl.col("now").alias(entry.link)).select(tables[entry.name].columns)
        rows = rows.sample(fraction=1.0, shuffle=True, seed=seed)
        released[entry.name] = rows.with_columns(pl.int_range(pl.len()).alias(entry.id))
        return released

    return program


def copies_not_rewritten(plan, seed):
    """Copies have the swap values that their record had before."""
    own = plan_program(plan, SeededSource(seed))
    (entry,), kept = plan.linked, [*plan.match, *plan.hold]

    def program(tables):
        released = dict(own(tables))
        old = tables["records"].unique(kept).select(*kept, *(pl.col(of).alias(at) for at, of in entry.copies.items()))
        by_record = released["records"].join(old, on=kept).select(pl.col(plan.id).alias(entry.link), *entry.copies)
        rows = released[entry.name].drop(list(entry.copies)).join(by_record, on=entry.link, maintain_order="left")
        released[entry.name] = rows.select(released[entry.name].columns)
        return released

    return program


def copies_of_the_first_round(plan, seed):
    """Copies are rewritten after the first round, and not after the second."""
    (later,), source = plan.rounds, SeededSource(seed)
    first = plan_program(plan.model_copy(update={"rounds": ()}), source)
    fields = {"match": (*plan.match, *later.match_also), "swap": later.swap, "hold": (*plan.hold, plan.id)}
    alone = {"rate": later.rate, "rates": (), "rounds": (), "linked": (), "id": None}
    second = plan_program(plan.model_copy(update=fields | alone), source)

    def program(tables):
        released = dict(first(tables))
        return released | second({"records": released["records"]})

    return program


def the_same_in_every_run(plan, seed):
    """Every run begins with the same seed."""
    return lambda tables: plan_program(plan, SeededSource(seed))(tables)


def the_same_in_every_stratum(plan, seed):
    """Strata of a size move alike, records being counted as they stand in the file; those with records alike do not."""
    own = plan_program(plan, SeededSource(seed))
    stratum, kept, swap = list(plan.match), [*plan.match, *plan.hold], list(plan.swap)

    def program(tables):
        counted = pl.int_range(pl.len()).over(stratum)
        before = tables["records"].with_columns(size_of=pl.len().over(stratum), place=counted)
        alike = before.filter(pl.struct(kept).is_duplicated()).select(stratum).unique()
        before = before.join(alike, on=stratum, how="anti")
        after = own(tables)["records"]
        giver = before.select(*stratum, *swap, giver=pl.col("place"))
        moved = after.join(before.select(*kept, "size_of", "place"), on=kept).join(giver, on=[*stratum, *swap])
        first = moved.sort(stratum).unique(["size_of", "place"], keep="first").select("size_of", "place", "giver")
        again = before.drop(swap).join(first, on=["size_of", "place"]).join(giver, on=[*stratum, "giver"])
        rest = after.join(alike, on=stratum, how="semi")
        released = pl.concat([again.select(after.columns), rest])
        return {"records": released.sample(fraction=1.0, shuffle=True, seed=seed)}

    return program
