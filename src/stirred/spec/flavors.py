"""Named flavors of differential privacy, each written as its four blocks.

Every function returns a :class:`Flavor`; ``.at(budget)`` makes it a specification. Flavors whose output premetric is a
metric measure distances along paths, so that groups are covered; the others compare neighbours, as they are defined.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from stirred._calls import refuses_wrong_arguments
from stirred.spec.blocks import Domain, InputPremetric, Multiverse, OutputPremetric
from stirred.spec.invariant import Invariant, plural
from stirred.spec.specification import Flavor

ANY = Domain("files of records", free=True)
"""No file in particular: flavors of different units can be compared on it."""


@refuses_wrong_arguments
def flavor(
    output: OutputPremetric,
    unit: str = "person",
    *,
    bounded: bool = True,
    ordered: bool = False,
    domain: Domain | None = None,
    invariants: Iterable[Invariant] = (),
    within: Iterable[tuple[str, int | None]] = (),
    stays_in: Iterable[str] = (),
) -> Flavor:
    """A flavor over records of one unit: what most named flavors are."""
    premetric = InputPremetric(
        "records", unit, bounded, ordered, output.kind.metric, within=tuple(within), stays_in=tuple(stays_in)
    )
    return Flavor(domain or ANY, Multiverse(tuple(invariants)), premetric, output)


@refuses_wrong_arguments
def pure(unit: str = "person", **blocks: Any) -> Flavor:
    """epsilon-DP.

    >>> print(pure("person").at(1))
    domain:           files of records
    multiverse:       All datasets are compared: no invariant is declared.
    input premetric:  the number of persons replaced between files of equal size, whatever their order
    output premetric: The largest absolute log ratio of the probabilities of any event (D_Mult, the standard of pure \
differential privacy).
    budget:           epsilon = 1.00
    nearest:          the nearest datasets of a universe are 1 apart
    """
    return flavor(OutputPremetric("multiplicative"), unit, **blocks)


@refuses_wrong_arguments
def approximate(delta: Any, unit: str = "person", **blocks: Any) -> Flavor:
    """(epsilon, delta)-DP: delta is part of the standard."""
    return flavor(OutputPremetric("approximate", delta), unit, **blocks)


@refuses_wrong_arguments
def zcdp(unit: str = "person", **blocks: Any) -> Flavor:
    """rho-zCDP."""
    return flavor(OutputPremetric("normalised-renyi"), unit, **blocks)


@refuses_wrong_arguments
def renyi(order: Any, unit: str = "person", **blocks: Any) -> Flavor:
    """(alpha, epsilon)-Renyi DP."""
    return flavor(OutputPremetric("renyi", order), unit, **blocks)


@refuses_wrong_arguments
def trade_off(unit: str = "person", **blocks: Any) -> Flavor:
    """f-DP; ``.at(GaussianCurve(mu))`` is Gaussian DP."""
    return flavor(OutputPremetric("trade-off"), unit, **blocks)


@refuses_wrong_arguments
def local(unit: str = "respondent", **blocks: Any) -> Flavor:
    """Local DP: each respondent's answer is protected where it is given, so that the order of answers is known."""
    name = f"answers of {plural(unit)}, one by one"
    domain = Domain(name, record=unit, starts="the respondent's own device, before anything is collected", free=True)
    return pure(unit, ordered=True, **({"domain": domain} | blocks))


@refuses_wrong_arguments
def metric(name: str, unit: str = "record", **blocks: Any) -> Flavor:
    """d-metric DP, such as geo-indistinguishability: no neighbours, only a metric."""
    return replace(pure(unit, **blocks), input_premetric=InputPremetric.metric(name, unit), nearest=None)


@refuses_wrong_arguments
def event_level(**blocks: Any) -> Flavor:
    """One event of one user at a time: a user of many events is protected that many times less."""
    return pure("event", **({"within": (("user", None),)} | blocks))


@refuses_wrong_arguments
def user_level(**blocks: Any) -> Flavor:
    """All events of a user together."""
    return pure("user", **blocks)


@refuses_wrong_arguments
def edge_level(**blocks: Any) -> Flavor:
    """Graphs that differ in one edge."""
    return pure("edge", **({"bounded": False, "domain": Domain("graphs", record="edge", free=True)} | blocks))


@refuses_wrong_arguments
def node_level(**blocks: Any) -> Flavor:
    """Graphs that differ in one node and its edges."""
    return pure("node", **({"bounded": False, "domain": Domain("graphs", record="edge", free=True)} | blocks))


@refuses_wrong_arguments
def blowfish(policy: str, constraints: Iterable[Invariant] = (), unit: str = "person", **blocks: Any) -> Flavor:
    """Blowfish: neighbours are given by a policy graph, universes by what is publicly known."""
    base = pure(unit, invariants=constraints, **blocks)
    return replace(base, input_premetric=InputPremetric.relation(policy, unit), nearest=None)


@refuses_wrong_arguments
def given_invariants(base: Flavor, invariants: Iterable[Invariant], nearest: Any = None) -> Flavor:
    """A flavor conditioned on invariants: datasets are compared only if they agree on them."""
    multiverse = Multiverse((*base.multiverse.invariants, *invariants))
    return replace(base, multiverse=multiverse, nearest=nearest)


@refuses_wrong_arguments
def subspace(events: str, unit: str = "person", **blocks: Any) -> Flavor:
    """Subspace DP: the standard looks at fewer events of the output (invariants are of the data instead)."""
    return flavor(OutputPremetric("multiplicative", events=events), unit, **blocks)


@refuses_wrong_arguments
def per_attribute(attribute: str, base: Flavor) -> Flavor:
    """Protection of one attribute: datasets are compared if nothing else differs."""
    held = Invariant(name=f"everything but the {attribute} of each {base.input_premetric.unit}")
    return given_invariants(base, (held,), nearest=1)


@refuses_wrong_arguments
def pufferfish(attackers: str, secrets: str) -> Flavor:
    """Pufferfish: the protection objects are distributions of the data, compared for pairs of secrets."""
    domain = Domain(
        attackers,
        objects="distributions",
        starts="before the data are generated: generating them is a part of the mechanism",
    )
    words = (
        "On pairs of conditional distributions: 1 between what one attacker believes given one secret of a pair and "
        f"given the other (the pairs: {secrets}), infinite for others"
    )
    premetric = InputPremetric.relation(secrets, "secret", words=words)
    compared = Multiverse(words="All distributions are compared: nothing is held fixed.")
    return Flavor(domain, compared, premetric, OutputPremetric("multiplicative"))
