"""Integers near a fitted table, for the parents of a chunk, compiled: every rounding is a flow of minimum cost.

For one parent, the entry of cell j and child k is written floor + b with b in {0, 1}. Cells supply what their floors
leave of the parent's count; entry (j, k) is an arc from cell j to the smallest group of child k that j belongs to;
groups of a child are nested, so each passes what it receives to the next larger one, and the largest to the ground. All
bounds are integers and the matrix is that of a network, so an optimum is integral, and it is found in integers.

Without the groups each cell just rounds its largest fractions up. That is where the flow starts: if it breaks no
group's bounds it is optimal, and else only the broken bounds have to be repaired.

Where no such integers exist, entries and groups may be 1 further off, and then any distance off with the declared
bounds only, at a cost of 1 for each unit of distance. The invariant a reader must know: cells' sums, closed entries and
declared bounds hold exactly in whatever is returned, and are recounted before it is.
"""

from __future__ import annotations

import numpy as np

from stirred._compiled import kernel
from stirred.topdown.flows import cheapest_flow

SNAP = 1e-6
"""Reals as close as this to an integer are that integer."""

NEAREST, WIDENED, FREED, IMPOSSIBLE = range(4)
"""How a parent was rounded: between floor and ceiling, 1 further off, as far off as needed, or not at all."""

COST = 1 << 32
"""The cost of moving an entry by 1; costs are integers, so that they add up exactly."""

MUCH = 1 << 50
"""More than any group's sum."""

PLENTY = 1 << 40
"""More than any entry of a root; sums over many entries stay exact."""


@kernel
def snapped(value):  # type: ignore[no-untyped-def]
    """The value, or the integer that it almost is."""
    nearest = np.rint(value)
    return nearest if abs(value - nearest) < SNAP else value


@kernel
def _local_nodes(cells, leaves, above, place):  # type: ignore[no-untyped-def]
    """The groups that a parent's cells belong to, larger ones first; ``place`` tells where (-1: not among them)."""
    count = 0
    for j in range(len(cells)):
        node = np.int64(leaves[cells[j]])
        while node >= 0 and place[node] < 0:
            place[node] = 0
            count += 1
            node = np.int64(above[node])
    nodes = np.empty(count, dtype=np.int64)
    count = 0
    for group in range(len(place)):  # numbered from larger to smaller groups
        if place[group] == 0:
            place[group] = count
            nodes[count] = group
            count += 1
    return nodes


@kernel
def _sort(keys, first, last, order, spare):  # type: ignore[no-untyped-def]
    """Put first, ..., last - 1 into ``order`` by ascending key, ties in their own order: a merge sort."""
    count = last - first
    for i in range(count):
        order[i] = first + i
    run = 1
    while run < count:
        for start in range(0, count, 2 * run):
            a, middle = start, min(start + run, count)
            b, end = middle, min(start + 2 * run, count)
            for i in range(start, end):
                if b >= end or (a < middle and keys[order[a]] <= keys[order[b]]):
                    spare[i] = order[a]
                    a += 1
                else:
                    spare[i] = order[b]
                    b += 1
        for i in range(count):
            order[i] = spare[i]
        run *= 2


@kernel
def _steps(value, closed, most, stage, steps, slopes):  # type: ignore[no-untyped-def]
    """What an entry may be: ``base`` plus up to three steps of growing slope. Returns base, how many steps."""
    if closed:
        return np.int64(0), 0
    floor = np.int64(np.floor(value))
    fraction = value - floor
    count = 0
    base = floor
    if stage > NEAREST and floor > 0:
        steps[count] = 1 if stage == WIDENED else floor
        slopes[count] = -COST
        base -= steps[count]
        count += 1
    if fraction > 0:
        steps[count] = 1
        slopes[count] = np.int64(np.rint((1.0 - 2.0 * fraction) * COST))
        count += 1
    if stage > NEAREST:
        left = most - floor - (1 if fraction > 0 else 0)
        if left > 0:
            steps[count] = 1 if stage == WIDENED else left
            slopes[count] = COST
            count += 1
    return base, count


@kernel
def _entries(stage, x, counts, free, opened, masked, places, sums, bases, rooms, out):  # type: ignore[no-untyped-def]
    """The base of every entry in ``out``, and sums over the smallest groups; returns how many steps, -1 if too few."""
    n, width = x.shape
    steps, slopes = np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.int64)
    arcs = 0
    for j in range(n):
        i = places[j]
        left = counts[j]
        for k in range(width):
            closed = masked and not opened[j, k]
            value = 0.0 if closed else snapped(x[j, k])
            base, count = _steps(value, closed, PLENTY if free else counts[j], stage, steps, slopes)
            out[j, k] = base
            left -= base
            sums[i, k] += value
            bases[i, k] += base
            room = np.int64(0)
            for step in range(count):
                room += steps[step]
            rooms[i, k] += room
            arcs += count
        if left < 0 and not free:
            return -1
    return arcs


@kernel
def _groups(  # type: ignore[no-untyped-def]
    stage, nodes, place, above, in_chain, columns, lower, upper, sums, bases, rooms, low, high, anchors, count
):
    """What groups may receive above their base, and their nodes: returns how many nodes, -1 if a group is stuck.

    Groups that cannot be broken have no node of their own but that of the next larger group, or the ground.
    """
    width = sums.shape[1]
    for i in range(len(nodes) - 1, -1, -1):
        column = columns[nodes[i]]
        within = stage == NEAREST or (stage == WIDENED and in_chain[nodes[i]])
        onward = place[above[nodes[i]]] if above[nodes[i]] >= 0 else len(nodes)
        for k in range(width):
            least, most = np.int64(0), np.int64(MUCH)
            if column >= 0:
                least, most = max(least, lower[k, column]), min(most, upper[k, column])
            if least > most:
                return -1
            if within:
                # Bounds first: a fitted 2.9995 under a lower bound of 3 is a 3.
                value = snapped(min(max(sums[i, k], float(least)), float(most)))
                least = max(least, np.int64(np.floor(value)) - stage)
                most = min(most, np.int64(np.ceil(value)) + stage)
            least = max(least - bases[i, k], np.int64(0))
            most = min(most - bases[i, k], rooms[i, k])
            if least > most:
                return -1
            low[i, k], high[i, k] = least, most
            sums[onward, k] += sums[i, k]
            bases[onward, k] += bases[i, k]
            rooms[onward, k] += rooms[i, k]
    for i in range(len(nodes)):
        onward = place[above[nodes[i]]] if above[nodes[i]] >= 0 else len(nodes)
        for k in range(width):
            if low[i, k] > 0 or high[i, k] < rooms[i, k]:
                anchors[i, k] = count
                count += 1
            else:
                anchors[i, k] = anchors[onward, k]
    return count


@kernel
def _lay_arcs(  # type: ignore[no-untyped-def]
    stage, x, counts, free, opened, masked, places, anchors, source, target, capacity, cost, entry, firsts
):
    """The arcs of all entries: those of cell j from ``firsts[j]`` on."""
    n, width = x.shape
    steps, slopes = np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.int64)
    at = 0
    for j in range(n):
        firsts[j] = at
        for k in range(width):
            closed = masked and not opened[j, k]
            _base, count = _steps(snapped(x[j, k]), closed, PLENTY if free else counts[j], stage, steps, slopes)
            for step in range(count):
                source[at] = 0 if free else 1 + j
                target[at] = anchors[places[j], k]
                capacity[at] = steps[step]
                cost[at] = slopes[step]
                entry[at] = j * width + k
                at += 1
    firsts[n] = at


@kernel
def _fill_cells(out, counts, free, firsts, target, capacity, cost, flow, excess, potential):  # type: ignore[no-untyped-def]
    """Each cell by itself: its cheapest steps, which is optimal without the groups. Returns whether there were enough.

    The potential of a cell is the cost of its next step (of its last, if it takes all), with the sign turned.
    """
    n, width = out.shape
    order, spare = np.empty(firsts[n], dtype=np.int64), np.empty(firsts[n], dtype=np.int64)
    for j in range(n):
        left = counts[j]
        for k in range(width):
            left -= out[j, k]
        _sort(cost, firsts[j], firsts[j + 1], order, spare)
        filling = True
        for o in range(firsts[j + 1] - firsts[j]):
            arc = order[o]
            if free:
                taken = capacity[arc] if cost[arc] < 0 else np.int64(0)
            else:
                taken = min(left, capacity[arc])
                left -= taken
                if filling:
                    potential[1 + j] = -cost[arc]
                    filling = taken == capacity[arc]
            flow[arc] = taken
            excess[target[arc]] += taken
        if left != 0 and not free:
            return False
    return True


@kernel
def _fill_groups(  # type: ignore[no-untyped-def]
    nodes, place, above, low, high, anchors, at, source, target, capacity, flow, excess
):
    """Groups pass on what they may, smaller ones first; returns whether any is left with too much or too little."""
    broken = False
    for i in range(len(nodes) - 1, -1, -1):
        onward = place[above[nodes[i]]] if above[nodes[i]] >= 0 else len(nodes)
        for k in range(anchors.shape[1]):
            node = anchors[i, k]
            if node == anchors[onward, k]:
                continue
            passed = min(max(excess[node], low[i, k]), high[i, k])
            source[at], target[at] = node, anchors[onward, k]
            capacity[at] = high[i, k] - low[i, k]
            flow[at] = passed - low[i, k]
            excess[node] -= passed
            excess[anchors[onward, k]] += passed
            broken = broken or excess[node] != 0
            at += 1
    return broken


@kernel
def _try(  # type: ignore[no-untyped-def]
    stage, x, counts, free, opened, masked, places, above, in_chain, nodes, place, lower, upper, columns, out
):
    """Round one parent at one stage; returns whether that was possible."""
    n, width = x.shape
    m = len(nodes)
    sums = np.zeros((m + 1, width))
    bases = np.zeros((m + 1, width), dtype=np.int64)
    rooms = np.zeros((m + 1, width), dtype=np.int64)
    low = np.zeros((m, width), dtype=np.int64)
    high = np.zeros((m, width), dtype=np.int64)
    anchors = np.zeros((m + 1, width), dtype=np.int64)  # the last row is the ground
    arcs = _entries(stage, x, counts, free, opened, masked, places, sums, bases, rooms, out)
    if arcs < 0:
        return False
    fixed_nodes = 1 if free else 1 + n
    count = _groups(
        stage, nodes, place, above, in_chain, columns, lower, upper, sums, bases, rooms, low, high, anchors, fixed_nodes
    )
    if count < 0:
        return False
    size = arcs + count - fixed_nodes  # those of entries, then those of groups
    source = np.empty(size, dtype=np.int32)
    target = np.empty(size, dtype=np.int32)
    capacity = np.empty(size, dtype=np.int64)
    cost = np.zeros(size, dtype=np.int64)
    flow = np.empty(size, dtype=np.int64)
    excess = np.zeros(count, dtype=np.int64)
    potential = np.zeros(count, dtype=np.int64)
    entry = np.empty(arcs, dtype=np.int64)
    firsts = np.empty(n + 1, dtype=np.int64)
    _lay_arcs(stage, x, counts, free, opened, masked, places, anchors, source, target, capacity, cost, entry, firsts)
    if not _fill_cells(out, counts, free, firsts, target, capacity, cost, flow, excess, potential):
        return False
    if _fill_groups(nodes, place, above, low, high, anchors, arcs, source, target, capacity, flow, excess):
        excess[0] = 0
        for node in range(1, count):
            excess[0] -= excess[node]
        if not cheapest_flow(source, target, capacity, cost, flow, excess, potential):
            return False
    for arc in range(arcs):
        out[entry[arc] // width, entry[arc] % width] += flow[arc]
    return True


@kernel
def _holds(out, cells, counts, free, opened, masked, leaves, above, nodes, place, lower, upper, columns):  # type: ignore[no-untyped-def]
    """Recount: entries, cells' sums and declared bounds."""
    n, width = out.shape
    sums = np.zeros((len(nodes), width), dtype=np.int64)
    for j in range(n):
        left = counts[j]
        for k in range(width):
            if out[j, k] < 0 or (masked and not opened[j, k] and out[j, k] != 0):
                return False
            left -= out[j, k]
        if not free and left != 0:
            return False
        node = leaves[cells[j]]
        while node >= 0:
            for k in range(width):
                sums[place[node], k] += out[j, k]
            node = above[node]
    for node in range(len(columns)):
        column = columns[node]
        if column >= 0:
            for k in range(width):
                s = sums[place[node], k] if place[node] >= 0 else np.int64(0)
                if s < lower[k, column] or s > upper[k, column]:
                    return False
    return True


@kernel
def round_parents(  # type: ignore[no-untyped-def]
    starts, cells, counts, free, first_child, x_starts, values, opened, masked,
    leaves, above, in_chain, columns, lower, upper, rounded, stages,
):  # fmt: skip
    """Round every parent of a chunk: positions are relative to the chunk, except in ``values`` and ``rounded``."""
    place = np.empty(len(above), dtype=np.int64)
    for node in range(len(above)):
        place[node] = -1
    no_mask = np.ones((1, 1), dtype=np.bool_)
    for parent in range(len(starts) - 1):
        a = starts[parent] - starts[0]
        b = starts[parent + 1] - starts[0]
        width = first_child[parent + 1] - first_child[parent]
        span = slice(x_starts[parent], x_starts[parent + 1])
        x = values[span].reshape(b - a, width)
        out = rounded[span].reshape(b - a, width)
        mask = no_mask
        if masked:
            at = x_starts[parent] - x_starts[0]
            mask = opened[at : at + (b - a) * width].reshape(b - a, width)
        units = slice(first_child[parent] - first_child[0], first_child[parent + 1] - first_child[0])
        nodes = _local_nodes(cells[a:b], leaves, above, place)
        places = np.empty(b - a, dtype=np.int64)
        for j in range(b - a):
            leaf = leaves[cells[a + j]]
            places[j] = place[leaf] if leaf >= 0 else len(nodes)
        stage = np.int64(NEAREST)
        while stage < IMPOSSIBLE:
            if _try(
                stage, x, counts[a:b], free, mask, masked, places, above, in_chain, nodes, place,
                lower[units], upper[units], columns, out,
            ) and _holds(
                out, cells[a:b], counts[a:b], free, mask, masked, leaves, above, nodes, place,
                lower[units], upper[units], columns,
            ):  # fmt: skip
                break
            stage += 1
        stages[parent] = stage
        if stage == IMPOSSIBLE:
            for j in range(b - a):
                for k in range(width):
                    out[j, k] = 0
        for node in nodes:
            place[node] = -1
