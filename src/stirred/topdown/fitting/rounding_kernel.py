"""Rounds fitted tables to integers near them, for the parents of a chunk (compiled): each is a flow of least cost.

For one parent, the entry of cell j and child k is written floor + b with b in {0, 1}. Cells supply what their floors
leave of the parent's count; entry (j, k) is an arc from cell j to the smallest group of child k that j belongs to;
groups of a child are nested, so each passes what it receives to the next larger one, and the largest to the ground. All
bounds are integers and the matrix is that of a network, so an optimum is integral, and it is found in integers.

Without the groups each cell just rounds its largest fractions up. That is where the flow starts: if it breaks no
group's bounds it is optimal, and else only the broken bounds have to be repaired.

Where no such integers exist, entries and groups may be 1 further off, and then any distance off with the declared
bounds only, at a cost of 1 for each unit of distance. The invariant a reader must know: cells' sums, closed entries and
declared bounds hold exactly in whatever is returned, and are recounted before it is.

The flow is found by the network simplex method, with a start that is optimal but for a few broken bounds. Nodes are 0
(the ground), then others; every real arc has flow between 0 and an integer capacity at an integer cost. The method
keeps a spanning tree of arcs whose flow may be between its bounds; an arc outside it whose reduced cost cost +
potential[source] - potential[target] says so enters, the first arc on its cycle to reach a bound leaves.

The invariant a reader must know: trees stay *strongly feasible* (a positive amount can be sent from every node to the
ground), which the choice among ties of the leaving arc preserves, so the method never cycles (Cunningham 1976). All
numbers are integers, so the optimum is exact, integral, and the same everywhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stirred._compiled import helper, kernel, part
from stirred.topdown.fitting.level_problem import clipped, indices, integers, reals

AT_LOWER, IN_TREE, AT_UPPER = 1, 0, -1
UP, DOWN = 1, -1

ARTIFICIAL_CAPACITY = 1 << 60


class Network(NamedTuple):
    """Arcs with their flows: the real ones, then room for an artificial one for each node. ``state`` is of the real
    ones."""

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    capacity: NDArray[np.int64]
    cost: NDArray[np.int64]
    flow: NDArray[np.int64]
    state: NDArray[np.int64]


class Tree(NamedTuple):
    """The spanning tree, by node: the parent, children as a list linked both ways, and the arc to the parent.

    ``through`` is that arc, ``direction`` whether it leads up to the parent or down from it.
    """

    parents: NDArray[np.int64]
    first: NDArray[np.int64]
    following: NDArray[np.int64]
    previous: NDArray[np.int64]
    depth: NDArray[np.int64]
    potential: NDArray[np.int64]
    through: NDArray[np.int64]
    direction: NDArray[np.int64]


@helper
def _attach(node, parent, tree):  # type: ignore[no-untyped-def]
    """Make ``node`` a child of ``parent``."""
    tree.parents[node] = parent
    head = tree.first[parent]
    tree.following[node] = head
    tree.previous[node] = -1
    if head >= 0:
        tree.previous[head] = node
    tree.first[parent] = node


@helper
def _detach(node, tree):  # type: ignore[no-untyped-def]
    """Take ``node`` from its parent's children."""
    before, after = tree.previous[node], tree.following[node]
    if before >= 0:
        tree.following[before] = after
    else:
        tree.first[tree.parents[node]] = after
    if after >= 0:
        tree.previous[after] = before


@helper
def _next_below(node, top, tree):  # type: ignore[no-untyped-def]
    """The node after ``node`` in a walk through all nodes below ``top``, parents first; ``top`` again at its end."""
    if tree.first[node] >= 0:
        return tree.first[node]
    while node != top and tree.following[node] < 0:
        node = tree.parents[node]
    return node if node == top else tree.following[node]


@helper
def _hang(tree, cost):  # type: ignore[no-untyped-def]
    """Depths and potentials of a whole new tree."""
    ground = np.int64(0)
    node = _next_below(ground, ground, tree)
    while node != ground:
        parent = tree.parents[node]
        tree.depth[node] = tree.depth[parent] + 1
        tree.potential[node] = tree.potential[parent] - tree.direction[node] * cost[tree.through[node]]
        node = _next_below(node, ground, tree)


@helper
def _settle(top, change, tree):  # type: ignore[no-untyped-def]
    """Add ``change`` to the potentials below and at ``top``, and set depths anew."""
    node = top
    while True:
        tree.potential[node] += change
        tree.depth[node] = tree.depth[tree.parents[node]] + 1
        node = _next_below(node, top, tree)
        if node == top:
            return


@helper
def _plant(network, tree, excess, start_potential):  # type: ignore[no-untyped-def]
    """The first tree: nodes hang on tight arcs where they can, else on artificial arcs that take up their excess."""
    source, target, capacity, cost, flow, state = network
    nodes, arcs = len(excess), len(state)
    hanger = indices(nodes)
    for node in range(nodes):
        hanger[node] = tree.first[node] = tree.following[node] = tree.previous[node] = -1
        flow[arcs + node] = excess[node]
    largest = np.int64(1)
    for arc in range(arcs):
        state[arc] = AT_UPPER if flow[arc] == capacity[arc] else AT_LOWER
        start, end = source[arc], target[arc]
        tight = cost[arc] + start_potential[start] == start_potential[end]
        if tight and excess[start] == 0 and flow[arc] < capacity[arc] and (hanger[start] < 0 or flow[arc] > 0):
            hanger[start] = arc
        if abs(cost[arc]) > largest:
            largest = abs(cost[arc])
    tree.parents[0] = -1
    for node in range(1, nodes):
        arc = hanger[node]
        tree.direction[node] = UP
        if arc >= 0:
            state[arc] = IN_TREE
            tree.through[node] = arc
            _attach(node, target[arc], tree)
            continue
        arc = arcs + node
        cost[arc] = largest * (nodes + 1)
        capacity[arc] = ARTIFICIAL_CAPACITY
        source[arc], target[arc] = node, 0
        if flow[arc] < 0:
            flow[arc] = -flow[arc]
            tree.direction[node] = DOWN
            source[arc], target[arc] = 0, node
        tree.through[node] = arc
        _attach(node, np.int64(0), tree)
    _hang(tree, cost)


@helper
def _promising(network, potential, cursor, block):  # type: ignore[no-untyped-def]
    """The most promising arc of the first block from ``cursor`` on that has any, or -1; and where it ended."""
    source, target, cost, state = network.source, network.target, network.cost, network.state
    arcs = len(state)
    entering = np.int64(-1)
    best = np.int64(0)
    left = block
    for _ in range(arcs):
        gain = state[cursor] * (cost[cursor] + potential[source[cursor]] - potential[target[cursor]])
        if gain < best:
            best = gain
            entering = cursor
        cursor += 1
        if cursor == arcs:
            cursor = np.int64(0)
        left -= 1
        if left == 0:
            if entering >= 0:
                break
            left = block
    return entering, cursor


@helper
def _room(node, tree, network, forward):  # type: ignore[no-untyped-def]
    """How much more the arc between ``node`` and its parent can take, ``forward``: away from the ground."""
    arc = tree.through[node]
    if (tree.direction[node] == DOWN) == forward:
        return network.capacity[arc] - network.flow[arc]
    return network.flow[arc]


@helper
def _send(node, join, sent, tree, flow):  # type: ignore[no-untyped-def]
    """Send an amount from ``node`` up to ``join``."""
    while node != join:
        flow[tree.through[node]] += tree.direction[node] * sent
        node = tree.parents[node]


@helper
def _turn(inside, outside, entering, leaving, tree, network):  # type: ignore[no-untyped-def]
    """Turn the path from ``inside`` up to ``leaving`` around and hang it on the other end of the entering arc."""
    parents, through, direction, potential = tree.parents, tree.through, tree.direction, tree.potential
    new_parent, new_arc = outside, entering
    new_direction = np.int64(UP) if network.source[entering] == inside else np.int64(DOWN)
    change = potential[outside] - potential[inside] - new_direction * network.cost[entering]
    node = inside
    while True:
        old_parent, old_arc, old_direction = parents[node], through[node], direction[node]
        _detach(node, tree)
        _attach(node, new_parent, tree)
        through[node] = new_arc
        direction[node] = new_direction
        if node == leaving:
            break
        new_parent, new_arc, new_direction = node, old_arc, -old_direction
        node = old_parent
    _settle(inside, change, tree)


@helper
def _pivot(entering, network, tree):  # type: ignore[no-untyped-def]
    """Send as much as possible around the cycle of the entering arc, and put that arc in place of a full one."""
    source, target, flow, state = network.source, network.target, network.flow, network.state
    parents, depth = tree.parents, tree.depth
    if state[entering] == AT_LOWER:
        start, end = source[entering], target[entering]
    else:
        start, end = target[entering], source[entering]
    join, other = start, end
    while join != other:
        if depth[join] >= depth[other]:
            join = parents[join]
        else:
            other = parents[other]

    # The first arc to reach a bound; the later one on the cycle among ties, which keeps the tree strongly feasible.
    room = network.capacity[entering]
    leaving = np.int64(-1)
    inside, outside = start, end
    node = start
    while node != join:
        possible = _room(node, tree, network, True)
        if possible < room:
            room, leaving = possible, node
        node = parents[node]
    node = end
    while node != join:
        possible = _room(node, tree, network, False)
        if possible <= room:
            room, leaving = possible, node
            inside, outside = end, start
        node = parents[node]

    if room > 0:
        sent = state[entering] * room
        flow[entering] += sent
        _send(source[entering], join, -sent, tree, flow)
        _send(target[entering], join, sent, tree, flow)
    if leaving < 0:
        state[entering] = -state[entering]
        return
    gone = tree.through[leaving]
    if gone < len(state):
        state[gone] = AT_LOWER if flow[gone] == 0 else AT_UPPER
    state[entering] = IN_TREE
    _turn(inside, outside, entering, leaving, tree, network)


@kernel
def cheapest_flow(network, excess, start_potential):  # type: ignore[no-untyped-def]
    """Send what nodes have in excess to where it lacks, at the least cost in all; returns whether there is a way.

    The flow must be the cheapest with its excesses, and the potentials say so: reduced costs are at least 0 for arcs
    that could carry more and at most 0 for arcs that carry anything. Arcs that do not start from the ground form no
    cycle. An artificial arc to or from the ground, at a forbidding cost, takes up each excess to start with.
    """
    nodes, arcs = len(excess), len(network.state)
    room = integers(8, nodes)
    tree = Tree(room[0], room[1], room[2], room[3], room[4], room[5], room[6], room[7])
    _plant(network, tree, excess, start_potential)
    block = np.int64(np.sqrt(arcs))
    block = block if block > 20 else np.int64(20)
    cursor = np.int64(0)
    while True:
        entering, cursor = _promising(network, tree.potential, cursor, block)
        if entering < 0:
            break
        _pivot(entering, network, tree)
    unsent = np.int64(0)
    for node in range(1, nodes):
        unsent += network.flow[arcs + node]
    return unsent == 0


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


class Nesting(NamedTuple):
    """Nested groups of cells, as :class:`stirred.topdown.fitting.level_problem.Nest` describes them, with the bounds of
    each child.

    ``lower`` and ``upper`` have a row for each child of the chunk and a column for each group with declared bounds.
    """

    leaves: NDArray[np.int32]
    above: NDArray[np.int32]
    in_chain: NDArray[np.bool_]
    columns: NDArray[np.int32]
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]


class Groups(NamedTuple):
    """The groups of one parent, larger ones first, and the bounds of its children.

    ``nodes`` are their numbers in the nest, ``place`` is the other way round (-1: not among them), ``onward`` the next
    larger group's place (the last place, one beyond, is the ground's), ``columns`` those of their bounds or -1.
    """

    nodes: NDArray[np.int64]
    place: NDArray[np.int64]
    onward: NDArray[np.int64]
    columns: NDArray[np.int64]
    in_chain: NDArray[np.int64]
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]


class Entries(NamedTuple):
    """What is to be rounded for one parent: fitted values by cell and child, and what entries have to keep.

    ``places[j]`` is the place of the smallest group of cell j.
    """

    x: NDArray[np.float64]
    counts: NDArray[np.int64]
    places: NDArray[np.int64]
    opened: NDArray[np.bool_]
    masked: bool
    free: bool


class Sums(NamedTuple):
    """By group and child: fitted sums, sums of the bases, and of the room above them; what the flow may be; the node.

    The last row is the ground.
    """

    fitted: NDArray[np.float64]
    bases: NDArray[np.int64]
    rooms: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    anchors: NDArray[np.int64]


@helper
def snapped(value):  # type: ignore[no-untyped-def]
    """The value, or the integer that it almost is."""
    nearest = np.rint(value)
    return nearest if abs(value - nearest) < SNAP else value


@helper
def _local_groups(cells, nesting, place, lower, upper):  # type: ignore[no-untyped-def]
    """The groups that a parent's cells belong to; ``place`` is -1 everywhere before."""
    leaves, above = nesting.leaves, nesting.above
    count = 0
    for j in range(len(cells)):
        node = np.int64(leaves[cells[j]])
        while node >= 0 and place[node] < 0:
            place[node] = 0
            count += 1
            node = np.int64(above[node])
    room = integers(4, count)
    nodes, onward, columns, in_chain = room[0], room[1], room[2], room[3]
    at = 0
    for group in range(len(place)):  # numbered from larger to smaller groups
        if place[group] == 0:
            place[group] = at
            nodes[at] = group
            onward[at] = place[above[group]] if above[group] >= 0 else count
            columns[at] = nesting.columns[group]
            in_chain[at] = nesting.in_chain[group]
            at += 1
    return Groups(nodes, place, onward, columns, in_chain, lower, upper)


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


@helper
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


@helper
def _entry(entries, j, k, stage, steps):  # type: ignore[no-untyped-def]
    """What entry (j, k) may be: returns its value, base and how many steps; ``steps`` are amounts, then slopes."""
    most = np.int64(PLENTY) if entries.free else entries.counts[j]
    closed = entries.masked and not entries.opened[j, k]
    value = 0.0 if closed else snapped(entries.x[j, k])
    base, count = _steps(value, closed, most, stage, steps[0], steps[1])
    return value, base, count


@helper
def _bases(stage, entries, sums, out):  # type: ignore[no-untyped-def]
    """The base of every entry in ``out``, and sums over the smallest groups; returns how many steps, -1 if too few."""
    n, width = out.shape
    steps = integers(2, 3)
    arcs = np.int64(0)
    for j in range(n):
        i = entries.places[j]
        left = entries.counts[j]
        for k in range(width):
            value, base, count = _entry(entries, j, k, stage, steps)
            out[j, k] = base
            left -= base
            sums.fitted[i, k] += value
            sums.bases[i, k] += base
            for step in range(count):
                sums.rooms[i, k] += steps[0, step]
            arcs += count
        if left < 0 and not entries.free:
            return np.int64(-1)
    return arcs


@helper
def _anchor(stage, groups, sums, count):  # type: ignore[no-untyped-def]
    """What groups may receive above their base, and their nodes: returns how many nodes, -1 if a group is stuck.

    Groups that cannot be broken have no node of their own but that of the next larger group, or the ground.
    """
    fitted, bases, rooms, low, high, anchors = sums
    height, width = len(groups.nodes), fitted.shape[1]
    for i in range(height - 1, -1, -1):
        column, onward = groups.columns[i], groups.onward[i]
        within = stage == NEAREST or (stage == WIDENED and groups.in_chain[i] > 0)
        for k in range(width):
            least, most = np.int64(0), np.int64(MUCH)
            if column >= 0:
                least, most = max(least, groups.lower[k, column]), min(most, groups.upper[k, column])
            if least > most:
                return np.int64(-1)
            if within:
                # Bounds first: a fitted 2.9995 under a lower bound of 3 is a 3.
                value = snapped(clipped(fitted[i, k], float(least), float(most)))
                least = max(least, np.int64(np.floor(value)) - stage)
                most = min(most, np.int64(np.ceil(value)) + stage)
            least = max(least - bases[i, k], np.int64(0))
            most = min(most - bases[i, k], rooms[i, k])
            if least > most:
                return np.int64(-1)
            low[i, k], high[i, k] = least, most
            fitted[onward, k] += fitted[i, k]
            bases[onward, k] += bases[i, k]
            rooms[onward, k] += rooms[i, k]
    for i in range(height):
        for k in range(width):
            if low[i, k] > 0 or high[i, k] < rooms[i, k]:
                anchors[i, k] = count
                count += 1
            else:
                anchors[i, k] = anchors[groups.onward[i], k]
    return count


@helper
def _lay_arcs(stage, entries, anchors, arcs, entry, firsts):  # type: ignore[no-untyped-def]
    """The arcs of all entries: those of cell j from ``firsts[j]`` on, each for the ``entry`` numbered cell by cell."""
    n, width = entries.x.shape
    steps = integers(2, 3)
    at = np.int64(0)
    for j in range(n):
        firsts[j] = at
        for k in range(width):
            _value, _base, count = _entry(entries, j, k, stage, steps)
            for step in range(count):
                arcs.source[at] = 0 if entries.free else 1 + j
                arcs.target[at] = anchors[entries.places[j], k]
                arcs.capacity[at] = steps[0, step]
                arcs.cost[at] = steps[1, step]
                entry[at] = j * width + k
                at += 1
    firsts[n] = at


@helper
def _fill_cells(entries, out, firsts, arcs, excess, potential):  # type: ignore[no-untyped-def]
    """Each cell by itself: its cheapest steps, which is optimal without the groups. Returns whether there were enough.

    The potential of a cell is the cost of its next step (of its last, if it takes all), with the sign turned.
    """
    n, width = out.shape
    free, capacity, cost = entries.free, arcs.capacity, arcs.cost
    order, spare = indices(firsts[n]), indices(firsts[n])
    for j in range(n):
        left = entries.counts[j]
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
            arcs.flow[arc] = taken
            excess[arcs.target[arc]] += taken
        if left != 0 and not free:
            return False
    return True


@helper
def _fill_groups(groups, sums, arcs, at, excess):  # type: ignore[no-untyped-def]
    """Groups pass on what they may, smaller ones first; returns whether any is left with too much or too little."""
    low, high, anchors = sums.low, sums.high, sums.anchors
    broken = False
    for i in range(len(groups.nodes) - 1, -1, -1):
        for k in range(anchors.shape[1]):
            node, onward = anchors[i, k], anchors[groups.onward[i], k]
            if node == onward:
                continue
            passed = min(max(excess[node], low[i, k]), high[i, k])
            arcs.source[at], arcs.target[at] = node, onward
            arcs.capacity[at] = high[i, k] - low[i, k]
            arcs.cost[at] = 0
            arcs.flow[at] = passed - low[i, k]
            excess[node] -= passed
            excess[onward] += passed
            if excess[node] != 0:
                broken = True
            at += 1
    return broken


@part
def _try(stage, entries, groups, out):  # type: ignore[no-untyped-def]
    """Round one parent at one stage; returns whether that was possible."""
    n, width = out.shape
    m = len(groups.nodes) + 1
    fitted, bases, rooms = reals(m, width), integers(m, width), integers(m, width)
    low, high, anchors = integers(m, width), integers(m, width), integers(m, width)
    sums = Sums(fitted, bases, rooms, low, high, anchors)
    steps = _bases(stage, entries, sums, out)
    if steps < 0:
        return False
    fixed_nodes = np.int64(1) if entries.free else 1 + n
    count = _anchor(stage, groups, sums, fixed_nodes)
    if count < 0:
        return False
    size = steps + count - fixed_nodes  # arcs of entries, cell after cell, and then those of groups
    most = size + count
    arcs = Network(indices(most), indices(most), indices(most), indices(most), indices(most), indices(size))
    entry, firsts = indices(steps), indices(n + 1)
    _lay_arcs(stage, entries, anchors, arcs, entry, firsts)
    nodes = integers(2, count)
    excess, potential = nodes[0], nodes[1]
    if not _fill_cells(entries, out, firsts, arcs, excess, potential):
        return False
    if _fill_groups(groups, sums, arcs, steps, excess):
        excess[0] = 0
        for node in range(1, count):
            excess[0] -= excess[node]
        if not cheapest_flow(arcs, excess, potential):
            return False
    for arc in range(steps):
        out[entry[arc] // width, entry[arc] % width] += arcs.flow[arc]
    return True


@helper
def _holds(cells, entries, groups, nesting, out):  # type: ignore[no-untyped-def]
    """Recount from the nest itself: entries, cells' sums and declared bounds."""
    n, width = out.shape
    sums = integers(len(groups.nodes), width)
    for j in range(n):
        left = entries.counts[j]
        for k in range(width):
            if out[j, k] < 0 or (entries.masked and not entries.opened[j, k] and out[j, k] != 0):
                return False
            left -= out[j, k]
        if not entries.free and left != 0:
            return False
        node = nesting.leaves[cells[j]]
        while node >= 0:
            for k in range(width):
                sums[groups.place[node], k] += out[j, k]
            node = nesting.above[node]
    for node in range(len(nesting.columns)):
        column, i = nesting.columns[node], groups.place[node]
        if column >= 0:
            for k in range(width):
                s = sums[i, k] if i >= 0 else np.int64(0)
                if s < groups.lower[k, column] or s > groups.upper[k, column]:
                    return False
    return True


@kernel
def round_parents(parents, free, values, opened, nesting, rounded, stages):  # type: ignore[no-untyped-def]
    """Round every parent of a chunk: positions are relative to the chunk, except in ``values`` and ``rounded``.

    ``opened`` tells which entries may be positive, and is empty where all may; ``free``: for roots, whose cells have
    no counts to keep. ``stages`` become how each parent was rounded.
    """
    masked = len(opened) > 0
    starts, first_child, x_starts = parents.starts, parents.first_child, parents.x_starts
    place = indices(len(nesting.above))
    for node in range(len(place)):
        place[node] = -1
    for parent in range(len(starts) - 1):
        a = starts[parent] - starts[0]
        b = starts[parent + 1] - starts[0]
        n, width = b - a, first_child[parent + 1] - first_child[parent]
        x = values[x_starts[parent] : x_starts[parent + 1]].reshape(n, width)
        out = rounded[x_starts[parent] : x_starts[parent + 1]].reshape(n, width)
        mask = opened[:0].reshape(0, width)
        if masked:
            at = x_starts[parent] - x_starts[0]
            mask = opened[at : at + n * width].reshape(n, width)
        unit = first_child[parent] - first_child[0]
        cells, places = parents.cells[a:b], indices(n)
        groups = _local_groups(
            cells, nesting, place, nesting.lower[unit : unit + width], nesting.upper[unit : unit + width]
        )
        for j in range(n):
            leaf = nesting.leaves[cells[j]]
            places[j] = place[leaf] if leaf >= 0 else len(groups.nodes)
        entries = Entries(x, parents.counts[a:b], places, mask, masked, free)
        stage = np.int64(NEAREST)
        while stage < IMPOSSIBLE:
            if _try(stage, entries, groups, out) and _holds(cells, entries, groups, nesting, out):
                break
            stage += 1
        stages[parent] = stage
        if stage == IMPOSSIBLE:
            for j in range(n):
                for k in range(width):
                    out[j, k] = 0
        for node in groups.nodes:
            place[node] = -1
