"""What a fit must keep at every level: invariants, the bounds and zeros of constraints, counts of earlier releases.

A constraint at the finest level binds above it too: lower bounds of children add up to a lower bound of their parent,
and what no child may have the parent may not have. Carried up like this, each step down the spine can keep them.

An earlier release that a new one must agree with (``H(Z) = P``), such as redistricting data before details, is public,
so agreeing with it costs nothing: it is read like the geography, and its counts become bounds of the fit. What both
releases together satisfy is the composition of their specifications, and a release that repeats another's invariants
declares them too.

The two geographies may differ. What binds is the finest level that both have, by its name, and that must have the same
units in both: counts of a finer earlier release are added up to it, and those of a coarser one bind sums of our places.

The invariant a reader must know: besides the noisy measurements, the values of the declared invariants are all that a
fit knows of the data. Constraints by other tables read them there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from stirred import errors
from stirred._bounded_reading import inside
from stirred._display import confidential, withheld
from stirred.margins.schema import Groups, refines
from stirred.margins.spine import Index, Spine
from stirred.releases.folder.manifest import differences, manifest_of, read_manifest
from stirred.releases.folder.release_folder import ReleaseFolder
from stirred.releases.ledger.ledger import Ledger
from stirred.tables.columns import as_text
from stirred.topdown.data.counting import Counted, count_rows
from stirred.topdown.data.histograms import Counts, Histograms, added_up, marginal
from stirred.topdown.fitting.level_problem import UNBOUNDED, Allowed, Bounds, cross
from stirred.topdown.measuring import (
    GEOGRAPHY_FILE,
    INVARIANTS,
    MEASUREMENTS,
    read_geography,
    write_geography,
    write_invariants,
)
from stirred.topdown.plan.fields import TopDownPlan
from stirred.topdown.plan.sections import (
    ConstraintSection,
    EarlierSection,
    InvariantSection,
    RelationSection,
    TableSection,
)


@dataclass(frozen=True, eq=False, repr=False)
class Agreement:
    """The counts of an earlier release in each unit of a level, by the attributes ``by`` of a table."""

    path: Path
    table: str
    by: tuple[str, ...]
    level: int
    """The finest level of our spine that the earlier release has too."""
    place: str
    """Its name."""
    units: Histograms
    manifest: str
    """SHA-256 of the earlier release's manifest."""

    def at(self, spine: Spine, level: int) -> Histograms:
        """The counts in the units of a level that is not finer than :attr:`level`."""
        return added_up(self.units, spine.first_unit(level, self.level))

    def published(self) -> dict[str, Any]:
        """The agreement as the certificate states it."""
        return {"table": self.table, "by": list(self.by), "level": self.place, "manifest_sha256": self.manifest}


def read_agreements(plan: TopDownPlan, spine: Spine) -> tuple[Agreement, ...]:
    """Count the earlier releases that a plan names."""
    return tuple(_read(plan, spine, section) for section in plan.earlier)


def require_counted(plan: TopDownPlan, ledger: Ledger) -> None:
    """Raise if an earlier release is not in the ledger: the two compose."""
    known = {one for entry in ledger.entries() for one in entry.manifests}
    for section in plan.earlier:
        if manifest_of(Path(section.path)) not in known:
            raise errors.topdown_earlier(section.path, f"it is not recorded in the ledger {ledger.path}")


def _read(plan: TopDownPlan, spine: Spine, section: EarlierSection) -> Agreement:
    release = ReleaseFolder.open(section.path)
    if release.mechanism != "topdown":
        raise errors.topdown_earlier(release.path, "it is not a TopDown release")
    if found := differences(release.path, read_manifest(release.path)):
        raise errors.topdown_earlier(release.path, found[0])
    before = TopDownPlan.from_published(release.certificate["plan"])
    name = section.of or section.table
    if name not in release.dictionary:
        raise errors.unknown_table(name, list(release.dictionary))
    columns = {one.name: one.column or one.name for one in before.table(name).attributes}
    by = section.by or tuple(columns)
    missing = [one for one in by if one not in columns]
    if missing:
        raise errors.missing_columns(f"the earlier release's {name}", missing)
    schema = plan.table(section.table).schema_of
    level = _shared_level(plan, spine, before, release.path)
    _require_invariants(plan, before, section, name, by, level)
    domains = {columns[one]: schema.values(one) for one in by}
    above = Spine(spine.levels[: level + 1], spine.names[: level + 1], spine.first_child[:level])
    words = f"the earlier release's {name}"
    counts = count_rows(release.open_table(name), words, above, spine.levels[level], domains)
    place = spine.levels[level]
    return Agreement(release.path, section.table, tuple(by), level, place, counts, manifest_of(release.path))


def _shared_level(plan: TopDownPlan, spine: Spine, before: TopDownPlan, folder: Path) -> int:
    """The finest level that both geographies have, by name; raises unless its units are the same in both."""
    shared = [level for level in plan.spine.levels if level in before.spine.levels]
    if not shared:
        raise errors.earlier_levels(folder, before.spine.levels, plan.spine.levels)
    other = read_geography(inside(folder, f"{MEASUREMENTS}/{GEOGRAPHY_FILE}"), before)
    level = spine.levels.index(shared[-1])
    mine = as_text(spine.names[level])
    theirs = as_text(other.names[other.levels.index(shared[-1])])
    for first, second, earlier in ((theirs, mine, True), (mine, theirs, False)):
        strange = first.filter(pc.invert(pc.is_in(first, value_set=second)))
        if len(strange):
            named = strange[: errors.FEW].to_pylist()
            raise errors.earlier_places(folder, shared[-1], len(strange), named, earlier=earlier)
    return level


def _require_invariants(
    plan: TopDownPlan, before: TopDownPlan, section: EarlierSection, name: str, by: Sequence[str], level: int
) -> None:
    """Raise unless each invariant of the earlier release that this one repeats is an invariant here too: at its level,
    or at the level at which the two agree where this plan does not have its level."""
    mine = [one for one in plan.invariants if one.table == section.table]
    for kept in before.invariants:
        if (
            kept.table == name
            and set(kept.by) <= set(by)
            and not any(_at_least_as_fine(plan, one, kept, level) for one in mine)
        ):
            words = f"by {', '.join(kept.by)} " if kept.by else ""
            here = plan.spine.all_levels[_level_here(plan, kept, level)]
            problem = (
                f"it keeps the number of '{name}' {words}in each {kept.level} exactly, so this plan must declare it"
                + (f" as an invariant in each {here}" if here != kept.level else "")
            )
            raise errors.topdown_earlier(section.path, problem)


def _level_here(plan: TopDownPlan, theirs: InvariantSection, level: int) -> int:
    """The level of this plan at which an earlier invariant is repeated: its own, or else the one that is shared."""
    levels = plan.spine.all_levels
    return levels.index(theirs.level) if theirs.level in levels else level


def _at_least_as_fine(plan: TopDownPlan, mine: InvariantSection, theirs: InvariantSection, level: int) -> bool:
    finer = plan.spine.all_levels.index(mine.level) >= _level_here(plan, theirs, level)
    return finer and set(theirs.by) <= set(mine.by)


def about(agreements: Sequence[Agreement], table: str) -> list[Agreement]:
    """The agreements that are about a table."""
    return [one for one in agreements if one.table == table]


_LOOKED_AT = 1 << 18
"""Leaves that are looked at together."""


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class Kept:
    """The constraints of one table at one level, a row for each unit."""

    bounds: tuple[Bounds, ...]
    allowed: tuple[Allowed, ...]
    agreed: tuple[tuple[Groups, Histograms], ...] = ()
    """Groups of cells and how many records of each an earlier release has: bounds that are written out when needed."""

    def of_units(self, units: slice) -> Kept:
        """The constraints of some units."""
        bounds = [Bounds(one.groups, one.lower[units], one.upper[units]) for one in self.bounds]
        allowed = [Allowed(one.groups, one.allowed[units]) for one in self.allowed]
        for groups, histograms in self.agreed:
            counts = histograms.of_units(np.arange(units.start, units.stop)).dense(int(groups.max()) + 1)
            bounds.append(Bounds(groups, counts, counts))
            allowed.append(Allowed(groups, counts > 0))
        return Kept(tuple(bounds), tuple(allowed))


@confidential
class Known:
    """What a fit knows besides the measurements: the plan, the geography, the values of the plan's invariants, and the
    counts of the earlier releases that it must agree with."""

    plan: TopDownPlan
    spine: Spine
    exact: tuple[Counts, ...]
    """The value of each invariant: a row for each unit of its level, a column for each group."""
    agreements: tuple[Agreement, ...] = ()

    @classmethod
    def of(cls, counted: Counted) -> Known:
        """With the values of invariants as they are in tables that were counted."""
        plan = counted.plan
        return cls(plan, counted.spine, tuple(counted.counts(one.table, one.level, one.by) for one in plan.invariants))

    @classmethod
    def as_far_as_told(cls, plan: TopDownPlan, spine: Spine, exact: Sequence[Counts | None]) -> Known:
        """The same of a plan with the invariants alone whose values are not None, and the constraints by these."""
        pairs = [(one, values) for one, values in zip(plan.invariants, exact, strict=True) if values is not None]
        leaf = plan.spine.levels[-1]
        told = tuple(
            constraint
            for constraint in plan.constraints
            if any(
                one.table == constraint.counted and one.level == leaf and set(constraint.each.values()) <= set(one.by)
                for one, _ in pairs
            )
        )
        invariants = tuple(one for one, _ in pairs)
        part = plan.model_copy(update={"invariants": invariants, "constraints": told, "relations": ()})
        return cls(part, spine, tuple(values for _, values in pairs))

    def with_earlier(self) -> Known:
        """With the earlier releases that the plan names; raises if they contradict it, or the values of invariants."""
        known = replace(self, agreements=read_agreements(self.plan, self.spine))
        require_nested(self.plan, known.agreements)
        require_agreement(known)
        return known

    def write(self, folder: Path) -> None:
        """Write the geography and the values of invariants into the folder of a draw."""
        write_geography(folder / MEASUREMENTS / GEOGRAPHY_FILE, self.plan, self.spine)
        write_invariants(folder / INVARIANTS, self.plan, self.spine, self.exact)

    def kept(self, table: TableSection, level: int) -> Kept:
        """The constraints of a table at a level: those declared there, and those carried up from below."""
        bounds: list[Bounds] = []
        allowed: list[Allowed] = []
        for invariant, values in zip(self.plan.invariants, self.exact, strict=True):
            at = self.plan.spine.all_levels.index(invariant.level)
            if invariant.table == table.name and at >= level:
                sums = carried(self.spine, values, at, level)
                bounds.append(Bounds(table.schema_of.groups(invariant.by), sums, sums))
        names = constrained_names(self.plan, table)
        if names:
            groups = table.schema_of.groups(names)
            lower, upper = self._ranges(table, names, level)
            bounds.append(Bounds(groups, lower, upper))
            allowed.append(Allowed(groups, upper > 0))
            bounds += self._together(table, groups, level)
        if level == 0:
            allowed += closed_at_root(self.spine, table)
        agreed = [
            (table.schema_of.groups(one.by), one.at(self.spine, level))
            for one in about(self.agreements, table.name)
            if level <= one.level  # below, children add up to what agrees
        ]
        return Kept(tuple(bounds), tuple(allowed), tuple(agreed))

    def impossible_groups(self, table: TableSection, level: int, asked: Groups, number: int) -> NDArray[np.bool_]:
        """Which asked groups of cells cannot have a record in which units of a level, by the zeros of the plan and by
        the values of invariants. Cells of group -1 are not asked for."""
        here = self.kept(table, level)
        masks = [(one.groups, one.allowed) for one in here.allowed if len(one.allowed) == self.spine.units(level)]
        masks += [(one.groups, one.upper > 0) for one in here.bounds]
        # Cells that all masks treat alike, with what each says of them.
        keys = np.stack([np.where(table.possible & (asked >= 0), asked, -1), *(groups for groups, _ in masks)])
        combinations = np.unique(keys[:, keys[0] >= 0], axis=1)
        found = np.ones((self.spine.units(level), number), dtype=np.bool_)
        for group, *places in combinations.T.tolist():
            open_there = np.ones(len(found), dtype=np.bool_)
            for (_, allowed), place in zip(masks, places, strict=True):
                if place >= 0:
                    open_there &= allowed[:, place]
            found[:, group] &= ~open_there
        return found

    def counted_by(self, constraint: ConstraintSection) -> tuple[Groups, Counts]:
        """The groups of cells that a constraint is about (-1: not), and for each leaf and group what the other table
        counts there."""
        other = self.plan.table(constraint.counted).schema_of
        leaf = self.plan.spine.levels[-1]
        needed = tuple(constraint.each.values())
        number, invariant = next(
            (number, one)
            for number, one in enumerate(self.plan.invariants)
            if one.table == constraint.counted and one.level == leaf and set(needed) <= set(one.by)
        )
        place = {label: at for at, label in enumerate(other.labels(needed))}
        counts = np.zeros((len(self.exact[number]), len(place)), dtype=np.int64)
        for column, label in enumerate(other.labels(invariant.by)):
            values = dict(zip(invariant.by, label, strict=True))
            counts[:, place[tuple(values[name] for name in needed)]] += self.exact[number][:, column]
        return groups_about(self.plan, constraint), counts

    def _together(self, table: TableSection, groups: Groups, level: int) -> list[Bounds]:
        """Bounds on several groups together; ranges of single groups do not express them."""
        found = []
        for constraint in self.plan.constraints:
            if constraint.table == table.name and (constraint.at_least or constraint.at_most is not None):
                about, counts = self.counted_by(constraint)
                if any(len(np.unique(groups[about == one])) > 1 for one in range(counts.shape[1])):
                    sums = carried(self.spine, counts, len(self.spine.levels) - 1, level)
                    most = np.full_like(sums, UNBOUNDED) if constraint.at_most is None else constraint.at_most * sums
                    found.append(Bounds(about, constraint.at_least * sums, most))
        return found

    def _ranges(self, table: TableSection, names: tuple[str, ...], level: int) -> tuple[Counts, Counts]:
        """How many records of each group a unit may have, so that its leaves can keep every constraint.

        A group is a combination of values of ``names``. From the leaves up: what constraints say of a leaf; what a
        margin that is kept exactly leaves for each of its groups, given the least and the most of the others; and sums
        of children. For one group at a time the range is exact.
        """
        schema = table.schema_of
        leaf = len(self.spine.levels) - 1
        units, number = self.spine.units(leaf), schema.number_of_groups(names)
        sample = np.unique(schema.groups(names), return_index=True)[1]  # one cell of each group
        lower = np.zeros((units, number), dtype=np.int64)
        upper = np.full((units, number), UNBOUNDED, dtype=np.int64)
        for constraint in self.plan.constraints:
            if constraint.table == table.name:
                groups, counts = self.counted_by(constraint)
                _tighten(lower, upper, groups[sample], counts, constraint)
        for at in range(leaf, level - 1, -1):
            for invariant, values in zip(self.plan.invariants, self.exact, strict=True):
                if invariant.table == table.name and self.plan.spine.all_levels.index(invariant.level) == at:
                    _settle(lower, upper, schema.groups(invariant.by)[sample], values)
            if at > level:
                edges = self.spine.first_child[at - 1][:-1]
                lower, upper = (np.add.reduceat(one, edges, axis=0) for one in (lower, upper))
                upper = np.minimum(upper, UNBOUNDED)
        return lower, upper


def require_nested(plan: TopDownPlan, agreements: Sequence[Agreement] = ()) -> None:
    """Raise if margins to be kept cross: rounding needs each group inside or outside every other."""
    for table in plan.released:
        schema = table.schema_of
        families = [
            *((str(one.margin), schema.groups(one.by)) for one in plan.invariants if one.table == table.name),
            *((constraint_words(one), groups_about(plan, one)) for one in plan.constraints if one.table == table.name),
            *((agreement_words(one), schema.groups(one.by)) for one in about(agreements, table.name)),
        ]
        for number, (words, groups) in enumerate(families):
            for before, others in families[:number]:
                if cross(groups, others):
                    raise errors.topdown_crossing(table.name, before, words)


def require_agreement(known: Known) -> None:
    """Raise if an earlier release contradicts an invariant, a constraint or a zero of the plan."""
    plan, spine = known.plan, known.spine
    for agreement in known.agreements:
        table = plan.table(agreement.table)
        schema = table.schema_of
        own, number = schema.groups(agreement.by), schema.number_of_groups(agreement.by)
        empty = np.bincount(own[table.possible], minlength=number) == 0
        never = marginal(agreement.units, np.where(empty, 0, -1).astype(np.int32), 1) > 0
        _refuse(spine, agreement, never, "a combination that cannot occur", agreement.level)
        for invariant, values in zip(plan.invariants, known.exact, strict=True):
            groups = schema.groups(invariant.by) if invariant.table == table.name else None
            if groups is not None and refines(own, groups):
                at = plan.spine.all_levels.index(invariant.level)
                level = min(at, agreement.level)
                coarser = groups[np.unique(own, return_index=True)[1]]
                found = marginal(agreement.at(spine, level), coarser, values.shape[1])
                different = found != carried(spine, values, at, level)
                _refuse(spine, agreement, different, str(invariant.margin), level)
        for constraint in plan.constraints:
            if constraint.table == table.name and refines(own, groups_about(plan, constraint)):
                groups, counts = known.counted_by(constraint)
                coarser = groups[np.unique(own, return_index=True)[1]]
                found = marginal(agreement.units, coarser, counts.shape[1])
                counts = carried(spine, counts, len(spine.levels) - 1, agreement.level)
                wrong = outside(constraint, found, counts)
                _refuse(spine, agreement, wrong, constraint_words(constraint), agreement.level)


def _refuse(spine: Spine, agreement: Agreement, wrong: NDArray[np.bool_], words: str, level: int) -> None:
    if wrong.any():
        units = np.flatnonzero(wrong.any(axis=1))
        named = names_of(spine, level, units)
        raise errors.topdown_contradiction(agreement_words(agreement), words, spine.levels[level], len(units), named)


def require_kept(counted: Counted, known: Known) -> None:
    """Raise if the data contradict a constraint of the plan; called before any noise is drawn."""
    for constraint in known.plan.constraints:
        refuse_leaves(counted, constraint_words(constraint), leaves_breaking(counted, constraint, known))


def refuse_leaves(counted: Counted, words: str, units: Index) -> None:
    """Raise if there are leaves in which the data contradict something."""
    if len(units):
        named = names_of(counted.spine, len(counted.spine.levels) - 1, units)
        raise errors.topdown_contradiction(words, "", counted.spine.levels[-1], len(units), named)


def names_of(spine: Spine, level: int, units: Index) -> list[str]:
    """The names of the first few of some units, for a message: which places there are is public."""
    return [str(name) for name in spine.names[level].take(units[: errors.FEW]).to_pylist()]


def leaves_breaking(counted: Counted, constraint: ConstraintSection, known: Known) -> Index:
    """The leaves in which the counts do not keep a constraint."""
    groups, counts = known.counted_by(constraint)
    return leaves_outside(
        constraint, counted.leaves[constraint.table], groups, counts.shape[1], lambda units: counts[units]
    )


def leaves_outside(
    said: ConstraintSection | RelationSection,
    leaves: Histograms,
    groups: Groups,
    number: int,
    counts: Callable[[Index], Counts],
) -> Index:
    """The leaves whose groups do not keep a constraint or a relation, given what is counted in some units."""
    broken = []
    for start in range(0, leaves.units, _LOOKED_AT):
        units = np.arange(start, min(start + _LOOKED_AT, leaves.units))
        wrong = outside(said, marginal(leaves.of_units(units), groups, number), counts(units))
        broken.append(units[wrong.any(axis=1)])
    return np.concatenate(broken)


def closed_at_root(spine: Spine, table: TableSection) -> list[Allowed]:
    """The structural zeros of a table, for its root: a cell that is empty there is empty everywhere."""
    if not table.zeros:
        return []
    impossible = ~table.possible
    possible = np.repeat([[True, False]], spine.units(0), axis=0)
    return [Allowed(impossible.astype(np.int32), possible[:, : int(impossible.max()) + 1])]


def _tighten(lower: Counts, upper: Counts, groups: Groups, counts: Counts, constraint: ConstraintSection) -> None:
    """What a constraint says of the leaves; a lower bound on several groups together says nothing of one, and an upper
    bound holds for each."""
    for group in range(counts.shape[1]):
        inside = np.flatnonzero(groups == group)
        if len(inside) == 1:
            lower[:, inside[0]] = np.maximum(lower[:, inside[0]], constraint.at_least * counts[:, group])
        if constraint.zero_without:
            upper[:, inside] = np.where((counts[:, group] == 0)[:, None], 0, upper[:, inside])
        if constraint.at_most is not None:
            upper[:, inside] = np.minimum(upper[:, inside], (constraint.at_most * counts[:, group])[:, None])


def _settle(lower: Counts, upper: Counts, groups: Groups, values: Counts) -> None:
    """Narrow ranges by a margin that is known exactly: each group gets at most what the others must leave it, and at
    least what they cannot take."""
    for group in range(values.shape[1]):
        inside = np.flatnonzero(groups == group)
        least = lower[:, inside].sum(axis=1, keepdims=True)
        most = np.minimum(upper[:, inside], UNBOUNDED).sum(axis=1, keepdims=True)
        total = values[:, group : group + 1]
        high = np.minimum(upper[:, inside], total - (least - lower[:, inside]))
        low = np.maximum(lower[:, inside], total - (most - upper[:, inside]))
        lower[:, inside], upper[:, inside] = low, high


def constrained_names(plan: TopDownPlan, table: TableSection) -> tuple[str, ...]:
    """The attributes that invariants, constraints and relations of a table speak of, in the table's order."""
    named: set[str] = set()
    for invariant in plan.invariants:
        if invariant.table == table.name:
            named |= set(invariant.by)
    for constraint in plan.constraints:
        if constraint.table == table.name:
            named |= {*constraint.each, *constraint.where}
    for relation in plan.relations:
        if relation.table == table.name:
            named |= {*relation.each, *relation.where}
        if relation.counted == table.name:
            named |= {*relation.each.values(), *relation.counted_where}
    bases = {base for name in named for base in table.schema_of.bases(name)}
    return tuple(attribute.name for attribute in table.attributes if attribute.name in bases)


def constraint_words(constraint: ConstraintSection) -> str:
    """A constraint in words, for messages and documents.

    >>> constraint_words(ConstraintSection(table="persons", counted="facilities", each={"hhgq": "type"}, at_least=1))
    "the constraint of 'persons' by 'facilities' (hhgq as type)"
    """
    pairs = [f"{mine} as {theirs}" for mine, theirs in constraint.each.items()]
    chosen = [f"{name} in {', '.join(values)}" for name, values in constraint.where.items()]
    most = [] if constraint.at_most is None else [f"at most {constraint.at_most:,} for each"]
    return f"the constraint of '{constraint.table}' by '{constraint.counted}' ({', '.join([*pairs, *chosen, *most])})"


def agreement_words(agreement: Agreement) -> str:
    """The earlier counts in words, for messages."""
    return f"the earlier release's '{agreement.table}' by {', '.join(agreement.by) or 'place alone'}"


# -- helpers -------------------------------------------------------------------------------------------------


def carried(spine: Spine, values: Counts, at: int, level: int) -> Counts:
    """Values of a level's units added up to those of a level above."""
    for below in range(at, level, -1):
        values = np.add.reduceat(values, spine.first_child[below - 1][:-1], axis=0)
    return values


def allowed_by(said: ConstraintSection | RelationSection, counts: Counts) -> tuple[Counts, Counts]:
    """How many records of ``table`` there may be, at least and at most, where ``counted`` has these counts."""
    upper = np.full_like(counts, UNBOUNDED) if said.at_most is None else said.at_most * counts
    if said.zero_without:
        upper = np.where(counts == 0, 0, upper)
    return said.at_least * counts, upper


def outside(said: ConstraintSection | RelationSection, found: Counts, counts: Counts) -> NDArray[np.bool_]:
    """Where the numbers found do not keep a constraint or a relation, given the counts that it reads."""
    lower, upper = allowed_by(said, counts)
    return np.asarray((found < lower) | (found > upper))


def groups_about(plan: TopDownPlan, constraint: ConstraintSection) -> Groups:
    """The groups of cells that a constraint is about; -1 for cells that it says nothing of."""
    table, other = plan.table(constraint.table).schema_of, plan.table(constraint.counted).schema_of
    if not constraint.each:
        return np.where(table.where(constraint.where), 0, -1).astype(np.int32)
    theirs = {label: place for place, label in enumerate(other.labels(tuple(constraint.each.values())))}
    place = np.array([theirs.get(label, -1) for label in table.labels(tuple(constraint.each))], dtype=np.int32)
    return np.asarray(place[table.groups(tuple(constraint.each))])
