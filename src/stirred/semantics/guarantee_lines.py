"""One line that names a guarantee: whose record, which budget of which standard, and how many counts stay exact.

Every figure carries it, so that no number is seen without the guarantee that it is of. The five blocks in full are in
:meth:`stirred.spec.Specification.blocks`.
"""

from __future__ import annotations

from collections.abc import Sequence

from stirred.spec.exact import display
from stirred.spec.specification import Specification, taken_as_known


def guarantee_line(specification: Specification) -> str:
    """The guarantee in one line.

    >>> from stirred.spec.loading import load
    >>> print(guarantee_line(load("epsilon=1,delta=1e-6,unit=household")))
    Guarantee: epsilon = 1.00 with delta = 1e-6 per household replaced, (epsilon, delta)-differential privacy; no \
table of counts held fixed
    >>> print(guarantee_line(load("topdown-2020-pl")))
    Guarantee topdown-2020-pl: rho = 2.63 per person that differs, zero-concentrated differential privacy; 3 tables of \
counts held fixed
    """
    name = specification.name
    head = f"Guarantee {name}" if name and "=" not in name else "Guarantee"
    return (
        f"{head}: {budget_line(specification)}, {specification.output_premetric.kind.standard}; {_fixed(specification)}"
    )


def guarantees_line(names: Sequence[str], specifications: Sequence[Specification]) -> str:
    """Several guarantees, each with its name and budget.

    >>> from stirred.spec.loading import load
    >>> guarantees_line(["first", "epsilon=1"], [load("rho=1/2"), load("epsilon=1")])
    'Guarantees: first (rho = 0.5 per person replaced); epsilon=1 (epsilon = 1.00 per person replaced)'
    """
    told = (f"{name} ({budget_line(one)})" for name, one in zip(names, specifications, strict=True))
    return f"Guarantees: {'; '.join(told)}"


def budget_line(specification: Specification) -> str:
    """The budget with its parameter, and the change that it is for.

    >>> from stirred.spec.loading import load
    >>> budget_line(load("epsilon=1,unbounded"))
    'epsilon = 1.00 per person added or removed'
    """
    output, budget, premetric = specification.output_premetric, specification.budget, specification.input_premetric
    kind = output.kind
    amount = budget.shown() if budget.is_curve else f"{kind.budget} = {budget.shown()}"
    if output.parameter is not None:
        amount += f" with {kind.parameter} = {display(output.parameter, 4)}"
    if premetric.kind != "records" or specification.domain.objects != "datasets":
        return f"{amount} per unit of distance"
    if specification.multiverse.invariants or specification.multiverse.universes:
        change = "that differs"  # one alone may not be able to be replaced
    else:
        change = "replaced" if premetric.bounded else "added or removed"
    return f"{amount} per {premetric.unit} {change} {specification.condition}".rstrip()


def _fixed(specification: Specification) -> str:
    multiverse = specification.multiverse
    if multiverse.universes:
        return f"{len(multiverse.universes)} listed groups of datasets, each by itself"
    taken = taken_as_known(specification)
    many = len(multiverse.invariants) - len(taken)
    said = [f"{many} table{'s' * (many != 1)} of counts held fixed"] if many else []
    said += [f"held fixed, though not released: {'; '.join(map(str, taken))}"] if taken else []
    return "; ".join(said) or "no table of counts held fixed"
