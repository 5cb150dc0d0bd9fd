"""Minimum-cost flow by the network simplex method, compiled, with a start that is optimal but for a few broken bounds.

Nodes are 0 (the ground), then others; every real arc has flow between 0 and an integer capacity at an integer cost. The
method keeps a spanning tree of arcs whose flow may be between its bounds; an arc outside it whose reduced cost
cost + potential[source] - potential[target] says so enters, the first arc on its cycle to reach a bound leaves.

The invariant a reader must know: trees stay *strongly feasible* (a positive amount can be sent from every node to the
ground), which the choice among ties of the leaving arc preserves, so the method never cycles (Cunningham 1976). All
numbers are integers, so the optimum is exact, integral, and the same everywhere.
"""

from __future__ import annotations

import numpy as np

from stirred._compiled import kernel

AT_LOWER, IN_TREE, AT_UPPER = 1, 0, -1
UP, DOWN = 1, -1

ARTIFICIAL_CAPACITY = 1 << 60


@kernel
def _attach(node, parent, parents, first, following, previous):  # type: ignore[no-untyped-def]
    """Make ``node`` a child of ``parent``."""
    parents[node] = parent
    head = first[parent]
    following[node] = head
    previous[node] = -1
    if head >= 0:
        previous[head] = node
    first[parent] = node


@kernel
def _detach(node, parents, first, following, previous):  # type: ignore[no-untyped-def]
    """Take ``node`` from its parent's children."""
    if previous[node] >= 0:
        following[previous[node]] = following[node]
    else:
        first[parents[node]] = following[node]
    if following[node] >= 0:
        previous[following[node]] = previous[node]


@kernel
def _settle(top, change, parents, first, following, depth, potential):  # type: ignore[no-untyped-def]
    """Add ``change`` to the potentials below and at ``top``, and set depths anew."""
    node = top
    while True:
        potential[node] += change
        depth[node] = depth[parents[node]] + 1
        if first[node] >= 0:
            node = first[node]
            continue
        while node != top and following[node] < 0:
            node = parents[node]
        if node == top:
            return
        node = following[node]


@kernel
def _hang(top, parents, first, following, depth, potential, direction, through, cost):  # type: ignore[no-untyped-def]
    """Depths and potentials of a whole new tree."""
    node = top
    while True:
        if node != top:
            depth[node] = depth[parents[node]] + 1
            potential[node] = potential[parents[node]] - direction[node] * cost[through[node]]
        if first[node] >= 0:
            node = first[node]
            continue
        while node != top and following[node] < 0:
            node = parents[node]
        if node == top:
            return
        node = following[node]


@kernel
def _longer(array, count):  # type: ignore[no-untyped-def]
    """A copy with room for ``count`` more entries, now 0."""
    longer = np.zeros(len(array) + count, dtype=np.int64)
    for i in range(len(array)):
        longer[i] = array[i]
    return longer


@kernel
def cheapest_flow(arc_source, arc_target, arc_capacity, arc_cost, arc_flow, excess, start_potential):  # type: ignore[no-untyped-def]
    """Send what nodes have in excess to where it lacks, at the least cost in all; returns whether there is a way.

    The flow must be the cheapest with its excesses, and the potentials say so: reduced costs are at least 0 for arcs
    that could carry more and at most 0 for arcs that carry anything. Arcs that do not start from the ground form no
    cycle. An artificial arc to or from the ground, at a forbidding cost, takes up each excess to start with.
    """
    nodes, arcs = len(excess), len(arc_cost)
    source, target = _longer(arc_source, nodes), _longer(arc_target, nodes)
    capacity, cost, flow = _longer(arc_capacity, nodes), _longer(arc_cost, nodes), _longer(arc_flow, nodes)
    state = np.empty(arcs, dtype=np.int64)
    hanger = np.empty(nodes, dtype=np.int64)
    for node in range(nodes):
        hanger[node] = -1
        flow[arcs + node] = excess[node]
    for arc in range(arcs):
        state[arc] = AT_UPPER if flow[arc] == capacity[arc] else AT_LOWER
        start, end = source[arc], target[arc]
        tight = cost[arc] + start_potential[start] == start_potential[end]
        if tight and excess[start] == 0 and flow[arc] < capacity[arc] and (hanger[start] < 0 or flow[arc] > 0):
            hanger[start] = arc
    largest = np.int64(1)
    for arc in range(arcs):
        largest = max(largest, abs(cost[arc]))
    penalty = largest * (nodes + 1)
    parents = np.zeros(nodes, dtype=np.int64)
    first = np.empty(nodes, dtype=np.int64)
    following = np.empty(nodes, dtype=np.int64)
    previous = np.empty(nodes, dtype=np.int64)
    for node in range(nodes):
        first[node] = following[node] = previous[node] = -1
    depth = np.zeros(nodes, dtype=np.int64)
    potential = np.zeros(nodes, dtype=np.int64)
    through = np.zeros(nodes, dtype=np.int64)
    direction = np.zeros(nodes, dtype=np.int64)
    parents[0] = -1
    for node in range(1, nodes):
        arc = hanger[node]
        if arc >= 0:
            state[arc] = IN_TREE
            through[node] = arc
            direction[node] = UP
            _attach(node, target[arc], parents, first, following, previous)
            continue
        arc = arcs + node
        cost[arc] = penalty
        capacity[arc] = ARTIFICIAL_CAPACITY
        through[node] = arc
        if flow[arc] >= 0:
            direction[node] = UP
            source[arc], target[arc] = node, 0
        else:
            flow[arc] = -flow[arc]
            direction[node] = DOWN
            source[arc], target[arc] = 0, node
        _attach(node, np.int64(0), parents, first, following, previous)
    _hang(0, parents, first, following, depth, potential, direction, through, cost)

    block = max(20, int(np.sqrt(arcs)))
    cursor = 0
    while arcs > 0:
        # The most promising arc of the first block that has any.
        entering = -1
        best = np.int64(0)
        seen = 0
        left = block
        while seen < arcs:
            gain = state[cursor] * (cost[cursor] + potential[source[cursor]] - potential[target[cursor]])
            if gain < best:
                best = gain
                entering = cursor
            cursor += 1
            if cursor == arcs:
                cursor = 0
            seen += 1
            left -= 1
            if left == 0:
                if entering >= 0:
                    break
                left = block
        if entering < 0:
            break

        if state[entering] == AT_LOWER:
            start, end = source[entering], target[entering]
        else:
            start, end = target[entering], source[entering]
        a, b = start, end
        while a != b:
            if depth[a] >= depth[b]:
                a = parents[a]
            else:
                b = parents[b]
        join = a

        # The first arc to reach a bound; the later one on the cycle among ties, which keeps the tree strongly feasible.
        room = capacity[entering]
        leaving = np.int64(-1)
        on_start = True
        node = start
        while node != join:
            arc = through[node]
            possible = flow[arc] if direction[node] == UP else capacity[arc] - flow[arc]
            if possible < room:
                room = possible
                leaving = node
            node = parents[node]
        node = end
        while node != join:
            arc = through[node]
            possible = capacity[arc] - flow[arc] if direction[node] == UP else flow[arc]
            if possible <= room:
                room = possible
                leaving = node
                on_start = False
            node = parents[node]

        if room > 0:
            sent = state[entering] * room
            flow[entering] += sent
            node = source[entering]
            while node != join:
                flow[through[node]] -= direction[node] * sent
                node = parents[node]
            node = target[entering]
            while node != join:
                flow[through[node]] += direction[node] * sent
                node = parents[node]
        if leaving < 0:
            state[entering] = -state[entering]
            continue
        inside, outside = (start, end) if on_start else (end, start)
        gone = through[leaving]
        if gone < arcs:
            state[gone] = AT_LOWER if flow[gone] == 0 else AT_UPPER
        state[entering] = IN_TREE

        # Turn the path from ``inside`` up to ``leaving`` around and hang it on the other end of the entering arc.
        new_parent = outside
        new_arc = entering
        new_direction = np.int64(UP) if source[entering] == inside else np.int64(DOWN)
        node = inside
        change = potential[outside] - potential[inside] - new_direction * cost[entering]
        while True:
            old_parent = parents[node]
            old_arc = through[node]
            old_direction = direction[node]
            _detach(node, parents, first, following, previous)
            _attach(node, new_parent, parents, first, following, previous)
            through[node] = new_arc
            direction[node] = new_direction
            if node == leaving:
                break
            new_parent = node
            new_arc = old_arc
            new_direction = -old_direction
            node = old_parent
        _settle(inside, change, parents, first, following, depth, potential)

    unsent = np.int64(0)
    for node in range(1, nodes):
        unsent += flow[arcs + node]
    for arc in range(arcs):
        arc_flow[arc] = flow[arc]
    return unsent == 0
