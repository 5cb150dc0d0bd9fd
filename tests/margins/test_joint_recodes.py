"""Recodes over several attributes and overlapping ones: groups, families and sensitivities, against enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repeats import some_or
from stirred.errors import StirredError
from stirred.margins.schema import Attribute, JointRecode, Recode, Schema

RACES = ("w", "b", "wb")
ORIGIN = JointRecode(
    "origin",
    ("race", "hispanic"),
    (
        ("Hispanic", ((("hispanic", ("yes",)),),)),
        ("white alone", ((("race", ("w",)), ("hispanic", ("no",))),)),
        ("other", ((("race", ("b", "wb")), ("hispanic", ("no",))),)),
    ),
)
ANY = JointRecode("any", ("race",), (("W", ((("race", ("w", "wb")),),)), ("B", ((("race", ("b", "wb")),),))), True)
# The two attributes of the recode are not beside each other, nor in its order.
ATTRIBUTES = (Attribute("hispanic", ("no", "yes")), Attribute("sex", ("f", "m")), Attribute("race", RACES))
ADULT = Recode("sexes", "sex", (("all", ("f", "m")),))
SCHEMA = Schema(ATTRIBUTES, (ORIGIN, ANY, ADULT))


def cells():
    return [
        dict(zip(("hispanic", "sex", "race"), one, strict=True)) for one in product(*(a.values for a in ATTRIBUTES))
    ]


def origin_of(cell):
    if cell["hispanic"] == "yes":
        return "Hispanic"
    return "white alone" if cell["race"] == "w" else "other"


def anys_of(cell):
    return [label for label in ("W", "B") if label.lower() in cell["race"]]


def groups_of(cell, names):
    """The labels of all groups of a query that a cell is in."""
    each = []
    for name in names:
        each.append([origin_of(cell)] if name == "origin" else anys_of(cell) if name == "any" else [cell[name]])
    return set(product(*each))


def incidence(schema, names):
    """A row for each cell, a column for each group, from the definition."""
    labels = schema.labels(names)
    return np.array([[int(label in groups_of(cell, names)) for label in labels] for cell in cells()])


QUERIES = [
    ("origin",),
    ("any",),
    ("any", "sex"),
    ("sex", "origin"),
    ("any", "origin"),
    ("race", "any"),
    ("any", "hispanic"),
]


@pytest.mark.parametrize("names", QUERIES)
def test_families_hold_every_group_once_and_each_cell_in_its_groups(names):
    expected = incidence(SCHEMA, names)
    found = np.zeros_like(expected)
    for family in SCHEMA.families(names):
        for cell, group in enumerate(family.groups):
            if group >= 0:
                found[cell, family.columns[group]] += 1
    assert np.array_equal(found, expected)
    assert SCHEMA.overlapping(names) == ("any" in names)


@pytest.mark.parametrize("names", QUERIES)
@pytest.mark.parametrize("one_place", [False, True])
def test_the_sensitivity_is_that_of_all_pairs_of_cells_and_places(names, one_place):
    rows = incidence(SCHEMA, names)
    worst = 0
    for old, new in product(rows, rows):
        if one_place:
            worst = max(worst, int(((old - new) ** 2).sum()))
        else:  # the record may also move to another place
            worst = max(worst, int(((old - new) ** 2).sum()), int((old**2).sum() + (new**2).sum()))
    assert SCHEMA.most_moved(names, one_place) == worst


@pytest.mark.repeats
@settings(max_examples=some_or(20, 60), deadline=None)
@given(
    members=st.lists(st.lists(st.booleans(), min_size=6, max_size=6).filter(any), min_size=1, max_size=5),
    others=st.lists(st.lists(st.booleans(), min_size=2, max_size=2).filter(any), min_size=1, max_size=2),
)
def test_the_sensitivity_of_any_two_overlapping_recodes_crossed_is_exact(members, others):
    values = tuple("abcdef")

    def recode(name, of, values, rows):
        groups = tuple(
            (str(at), (((of, tuple(v for v, inside in zip(values, row, strict=True) if inside)),),))
            for at, row in enumerate(rows)
        )
        return JointRecode(name, (of,), groups, True)

    schema = Schema(
        (Attribute("one", values), Attribute("two", ("x", "y"))),
        (recode("p", "one", values, members), recode("q", "two", ("x", "y"), others)),
    )
    rows = np.einsum("gi,hj->ijgh", np.array(members, dtype=int), np.array(others, dtype=int)).reshape(12, -1)
    squares = (rows**2).sum(axis=1)
    apart = max(int(((a - b) ** 2).sum()) for a, b in product(rows, rows))
    assert schema.most_moved(("p", "q")) == 2 * int(squares.max())
    assert schema.most_moved(("p", "q"), one_place=True) == (apart or 2 * int(squares.max()))


def test_conditions_by_such_recodes_pick_the_cells_of_any_wanted_group():
    assert SCHEMA.where({"any": ["W"]}).tolist() == ["w" in cell["race"] for cell in cells()]
    assert SCHEMA.where({"any": ["W", "B"]}).all()
    found = SCHEMA.where({"origin": ["white alone", "Hispanic"]}).tolist()
    assert found == [origin_of(cell) in ("white alone", "Hispanic") for cell in cells()]
    assert SCHEMA.bases("origin") == ("race", "hispanic") and SCHEMA.axes == ((0, 2), (1,))


@pytest.mark.parametrize(
    ("recode", "words"),
    [
        (JointRecode("r", ("race", "sex"), (("g", ((("race", ("w",)),),)),)), "exactly one group"),
        (JointRecode("r", ("race",), (("g", ()),), True), "empty group 'g'"),
        (JointRecode("r", ("race",), (), True), "empty list of groups"),
        (JointRecode("r", ("race", "race"), (("g", ((),)),)), "each of its attributes once"),
        (JointRecode("r", ("age",), (("g", ((),)),)), "age"),
        (JointRecode("r", ("race",), (("g", ((("sex", ("f",)),),)),), True), "sex"),
        (JointRecode("r", ("race",), (("g", ((("race", ("x",)),),)),), True), "x"),
    ],
)
def test_recodes_that_cannot_be_are_refused(recode, words):
    with pytest.raises(StirredError) as found:
        Schema(ATTRIBUTES, (recode,))
    assert words in str(found.value)


def test_an_overlapping_recode_of_too_many_values_is_refused():
    many = Attribute("many", tuple(str(n) for n in range(600)))
    with pytest.raises(StirredError, match="at most 512"):
        Schema((many,), (JointRecode("r", ("many",), (("g", ((("many", ("1",)),),)),), True),))


def test_groups_that_overlap_have_no_single_number():
    with pytest.raises(StirredError, match="overlap"):
        SCHEMA.groups(("any",))
