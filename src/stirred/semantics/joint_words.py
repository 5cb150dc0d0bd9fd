"""What happens to two records that change together, in words."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from stirred.semantics import joint_changes as joint
from stirred.semantics.formatting import listed_plainly
from stirred.spec.invariant import plural


def told_in_words(unit: str, search: joint.Search, found: joint.JointChange, spoken: Collection[str]) -> str:
    """A change of two records of a ``unit``; ``spoken`` are the attributes that are named."""
    told = _Words(search, found, {name: own for name, own in found.attributes.items() if name in spoken})
    what = [*told.moves(), *told.attributes()] or ["change"]
    likeness = told.likeness()
    said = f", {likeness}," if likeness else ""
    return f"two {plural(unit)}{told.places()}{said} {' and '.join(what)}, all else as it is"


@dataclass(frozen=True)
class _Words:
    search: joint.Search
    found: joint.JointChange
    named: dict[str, joint.Partition]

    def _finest(self, partition: joint.Partition) -> str | None:
        """The finest level at which places are as the partition says."""
        named = list(zip(self.search.levels, self.found.levels, strict=True))
        return next((level for level, own in reversed(named) if own == partition), None)

    def places(self) -> str:
        """Where the two are before anything changes."""
        blocks = [joint.PARTITIONS[one] for one in self.found.levels]
        shared = [level for level, own in zip(self.search.levels, blocks, strict=True) if own[0] == own[2]]
        if len(shared) == len(blocks):
            return f" of one {shared[-1]}"
        different = f" of different {plural(self._finest(joint.CROSSING) or self.search.levels[len(shared)])}"
        known = len(shared) == 1 and self.search.single_root
        return different if known or not shared else f"{different} of one {shared[-1]}"

    def moves(self) -> Iterator[str]:
        """Where they move."""
        leaf, own = self.search.levels[-1], self.found.levels[-1]
        if own in (joint.SAME, joint.STAYING):
            return
        crossed, shared = self._finest(joint.CROSSING), self._finest(joint.SAME)
        if crossed == leaf:
            yield f"each move to the other's {leaf}"
        elif crossed is not None:
            yield f"each move to another {leaf} of the other's {crossed}"
        elif own == joint.TOGETHER:
            first = self.search.levels[self.found.levels.index(joint.TOGETHER)]
            yield f"both move to the same other {first}{f' of that {shared}' if shared else ''}"
        elif (stayed := self._finest(joint.STAYING)) is not None:
            yield f"each move within their {stayed}"
        else:
            yield "move"

    def attributes(self) -> Iterator[str]:
        """What they change in."""
        ways: dict[str, list[str]] = {}
        for name, own in self.named.items():
            ways.setdefault(_way(own), []).append(name)
        for way, names in ways.items():
            if way:
                yield way.format(listed_plainly(names))

    def likeness(self) -> str:
        """In which of the attributes that stay they are alike."""
        alike = [name for name, own in self.named.items() if own == joint.SAME]
        unlike = [name for name, own in self.named.items() if own == joint.STAYING]
        every = "every other attribute" if len(alike) + len(unlike) < len(self.named) else "every attribute"
        if not alike or not unlike:
            return f"{'alike' if alike else 'unlike'} in {every}" if alike or unlike else ""
        return f"alike in {listed_plainly(alike)} and unlike in {listed_plainly(unlike)}"


def _way(partition: joint.Partition) -> str:
    """How two records change in an attribute; empty where neither does."""
    if partition == joint.CROSSING:
        return "exchange their {}"
    if partition == joint.TOGETHER:
        return "change alike in {} (both from one value to the same other)"
    before, after, second_before, second_after = joint.PARTITIONS[partition]
    changed = (before != after) + (second_before != second_after)
    return ("", "one of them gets another {}", "each get another {}")[changed]
