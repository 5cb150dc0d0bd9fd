"""Minimum-cost flow by the network simplex method, compiled, with a start that is optimal but for a few broken bounds.

Nodes are 0 (the ground), then others; every real arc has flow between 0 and an integer capacity at an integer cost. The
method keeps a spanning tree of arcs whose flow may be between its bounds; an arc outside it whose reduced cost
cost + potential[source] - potential[target] says so enters, the first arc on its cycle to reach a bound leaves.

The invariant a reader must know: trees stay *strongly feasible* (a positive amount can be sent from every node to the
ground), which the choice among ties of the leaving arc preserves, so the method never cycles (Cunningham 1976). All
numbers are integers, so the optimum is exact, integral, and the same everywhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stirred._compiled import helper, kernel
from stirred.topdown.layout import indices, integers

AT_LOWER, IN_TREE, AT_UPPER = 1, 0, -1
UP, DOWN = 1, -1

ARTIFICIAL_CAPACITY = 1 << 60


class Network(NamedTuple):
    """Arcs with their flows: the real ones, then an artificial one for each node. ``state`` is of the real ones."""

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
def _longer(array, count):  # type: ignore[no-untyped-def]
    """A copy with room for ``count`` more entries, now 0."""
    longer = integers(1, len(array) + count)[0]
    for i in range(len(array)):
        longer[i] = array[i]
    return longer


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
def cheapest_flow(arc_source, arc_target, arc_capacity, arc_cost, arc_flow, excess, start_potential):  # type: ignore[no-untyped-def]
    """Send what nodes have in excess to where it lacks, at the least cost in all; returns whether there is a way.

    The flow must be the cheapest with its excesses, and the potentials say so: reduced costs are at least 0 for arcs
    that could carry more and at most 0 for arcs that carry anything. Arcs that do not start from the ground form no
    cycle. An artificial arc to or from the ground, at a forbidding cost, takes up each excess to start with.
    """
    nodes, arcs = len(excess), len(arc_cost)
    network = Network(
        _longer(arc_source, nodes),
        _longer(arc_target, nodes),
        _longer(arc_capacity, nodes),
        _longer(arc_cost, nodes),
        _longer(arc_flow, nodes),
        indices(arcs),
    )
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
    for arc in range(arcs):
        arc_flow[arc] = network.flow[arc]
    return unsent == 0
