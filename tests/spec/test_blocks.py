"""Blocks refuse what means nothing, are equal when they mean the same, and measure distances as defined."""

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stirred.errors import StirredError
from stirred.loss.curves.power_curves import EpsilonProfile, GaussianCurve
from stirred.spec import Budget, Domain, InputPremetric, Invariant, Multiverse, OutputPremetric, flavors
from stirred.spec.exact import exact, written

NOT_NUMBERS = [
    "1e999999999",
    "1e-999999999",
    Decimal("1e999999999"),
    -1,
    -0.1,
    "-1/3",
    math.nan,
    np.float64("nan"),
    -math.inf,
    "nan",
    "",
    "one",
    "1/0",
    None,
    True,
    [1],
    1j,
]


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)
def test_a_budget_is_a_number_from_zero_on(value):
    with pytest.raises(StirredError) as refusal:
        Budget(value)
    assert refusal.value.kind == "bad-number"


@given(st.fractions(min_value=0))
def test_an_exact_number_comes_back_from_its_text(number):
    assert exact(written(number)) == number


@given(st.floats(min_value=0, allow_nan=False))
def test_a_float_is_its_shortest_decimal(number):
    assert exact(number) == (math.inf if number == math.inf else Fraction(repr(number)))
    assert exact(np.float64(number)) == exact(number)


def test_equal_budgets_written_differently_are_equal():
    assert Budget("2.63") == Budget(2.63) == Budget(Fraction(263, 100)) == Budget(np.float64(2.63))
    assert hash(Budget("2.63")) == hash(Budget(2.63))
    assert Budget(0.05) == Budget("1/20")


def test_words_do_not_make_blocks_different_and_meaning_does():
    assert Domain("census", words="one way") == Domain("census", words="another way")
    assert Domain("census") != Domain("census", starts="after imputation")
    assert Multiverse((Invariant("person", by=("b", "a")),)) == Multiverse((Invariant("person", by=("a", "b")),))
    assert InputPremetric(unit="person") != InputPremetric(unit="household")


BAD_BLOCKS = {
    "a domain has a name": lambda: Domain(""),
    "datasets once": lambda: Domain("x", datasets=("a", "a")),
    "invariants or universes": lambda: Multiverse((Invariant("person"),), (("a",),)),
    "counts or name": lambda: Invariant(),
    "not both": lambda: Invariant("person", name="p"),
    "a name alone": lambda: Invariant(name="p", by=("a",)),
    "threshold": lambda: Invariant("person", at_least=0),
    "scale": lambda: InputPremetric(scale=0),
    "infinite scale": lambda: InputPremetric(scale=math.inf),
    "relation without name": lambda: InputPremetric("relation"),
    "records with name": lambda: InputPremetric(name="x"),
    "distances of records": lambda: InputPremetric(distances=(("a", "b", 1),)),
    "distance to itself": lambda: InputPremetric.table({("a", "a"): 1}),
    "delta missing": lambda: OutputPremetric("approximate"),
    "delta above one": lambda: OutputPremetric("approximate", 2),
    "order one": lambda: OutputPremetric("renyi", 1),
    "parameter not wanted": lambda: OutputPremetric("multiplicative", 1),
    "largest by universe": lambda: Budget(1, by_universe=(1, 2)),
    "number for a curve": lambda: flavors.trade_off().at(1),
    "curve for a number": lambda: flavors.pure().at(GaussianCurve(1)),
    "wrong curve": lambda: flavors.trade_off().at(EpsilonProfile(((0.1, 1.0),))),
    "number of universes": lambda: flavors.pure().at(Budget(1, by_universe=(1,))),
    "paths for a trade-off": lambda: flavors.Flavor(
        Domain("x"), Multiverse(), InputPremetric(), OutputPremetric("trade-off")
    ),
}


@pytest.mark.parametrize("build", BAD_BLOCKS.values(), ids=list(BAD_BLOCKS))
def test_a_block_that_means_nothing_is_refused(build):
    with pytest.raises(StirredError) as refusal:
        build()
    assert refusal.value.kind == "bad-block"


def test_unknown_standards_and_strange_datasets_are_named():
    with pytest.raises(StirredError, match=r"no output premetric 'wasserstein'.*'multiplicative'"):
        OutputPremetric("wasserstein")
    with pytest.raises(StirredError, match="'c'") as refusal:
        flavors.Flavor(
            Domain("x", datasets=("a", "b")), Multiverse((), (("a", "c"),)), InputPremetric(), OutputPremetric()
        )
    assert refusal.value.kind == "strange-datasets"


def test_a_metric_known_by_name_only_is_not_evaluated():
    with pytest.raises(StirredError) as refusal:
        InputPremetric.metric("great-circle").distance("a", "b")
    assert refusal.value.kind == "cannot-evaluate"
    with pytest.raises(StirredError) as refusal:
        InputPremetric.relation("policy").sharpen()
    assert refusal.value.kind == "cannot-evaluate"


def paths(files, relation):
    """Lengths of shortest paths in the graph of a relation, by breadth-first search."""
    found = {}
    for start in files:
        reached, frontier, length = {start: 0}, [start], 0
        while frontier:
            length += 1
            frontier = [y for y in files if y not in reached and any(relation(x, y) for x in frontier)]
            reached |= dict.fromkeys(frontier, length)
        found |= {(start, end): reached.get(end, math.inf) for end in files}
    return found


FILES = [file for size in range(4) for file in itertools.product("ab", repeat=size)]


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("ordered", [True, False])
def test_sharpened_distances_are_shortest_paths_of_neighbours(bounded, ordered):
    """Definition A.4.1 and equations A.3, A.4: enumeration of all files of up to three records."""
    neighbours = InputPremetric.neighbours("record", bounded=bounded, ordered=ordered)
    sharpened = neighbours.sharpen()
    shortest = paths(FILES, lambda x, y: neighbours.distance(x, y) == 1)
    for (x, y), length in shortest.items():
        step = neighbours.distance(x, y)
        if not ordered and sorted(x) == sorted(y):
            length = 0  # the same file in another order
        assert sharpened.distance(x, y) == length
        assert step in (0, 1, math.inf)


def test_neighbours_two_apart_are_infinitely_far_until_sharpened():
    """Example 8.12."""
    x, y = ["a", "b"], ["c", "d"]
    assert InputPremetric.neighbours().distance(x, y) == math.inf
    assert InputPremetric().distance(x, y) == 2


def test_a_table_of_distances_is_sharpened_in_both_directions():
    one_way = InputPremetric.table({("a", "b"): 1, ("b", "c"): "1/2", ("c", "a"): 3})
    sharp = one_way.sharpen()
    assert sharp.distance("a", "c") == Fraction(3, 2)
    assert sharp.distance("b", "a") == Fraction(7, 2)
    assert one_way.distance("c", "b") == math.inf
    assert sharp.distance("c", "b") == 4


def test_a_relation_or_a_metric_of_ones_own_becomes_a_table():
    places = {"a": (0, 0), "b": (3, 4), "c": (0, 1)}
    near = InputPremetric.related(places, lambda x, y: math.dist(x, y) <= 1)
    assert (near.distance("a", "c"), near.distance("a", "b")) == (1, math.inf)
    assert InputPremetric.measured(places, math.dist).distance("a", "b") == 5


def test_records_may_be_mappings():
    one, other = {"age": 1, "sex": "f"}, {"sex": "f", "age": 1}
    assert InputPremetric().distance([one], [other]) == 0
    assert InputPremetric(bounded=False).distance([one], []) == 1


def test_a_specification_knows_its_nearest_distance_and_what_lies_inside():
    plain = flavors.pure("person").at(1)
    assert plain.nearest == 1
    kept = Invariant("person", by=("county",)), Invariant("person", by=("tenure",))
    swapped = flavors.given_invariants(flavors.pure("person"), kept, nearest=2).at("4.04")
    x = [{"county": "a", "tenure": "own"}, {"county": "b", "tenure": "rent"}]
    crossed = [{"county": "a", "tenure": "rent"}, {"county": "b", "tenure": "own"}]
    moved = [{"county": "b", "tenure": "own"}, {"county": "b", "tenure": "rent"}]
    inside = swapped.counterfactual(x, crossed)
    assert (inside.inside, inside.distance, inside.bound) == (True, 2, Fraction("8.08"))
    outside = swapped.counterfactual(x, moved)
    assert (outside.inside, outside.distance, outside.bound) == (False, 1, None)
    assert not swapped.counterfactual(x, x[:1]).inside
    undecided = flavors.given_invariants(flavors.pure("person"), [Invariant(name="the mean age")]).at(1)
    assert undecided.counterfactual(x, moved).inside is None


def test_the_budget_at_a_distance_grows_as_the_standard_says():
    assert flavors.pure().at("1.5").budget_at(2) == 3
    assert flavors.zcdp().at("1.5").budget_at(2) == 6
    assert flavors.pure().at(0).budget_at(math.inf) == math.inf  # Remark 2.4.6


def test_bounded_distances_hide_the_number_of_records():
    assert Invariant("person") in flavors.pure("person").invariants()
    assert flavors.pure("person", bounded=False).invariants() == ()


NAMED = {
    "pure": flavors.pure(),
    "approximate": flavors.approximate("1e-6"),
    "zcdp": flavors.zcdp(),
    "renyi": flavors.renyi(2),
    "trade-off": flavors.trade_off(),
    "local": flavors.local(),
    "metric": flavors.metric("great-circle", "place"),
    "event": flavors.event_level(),
    "user": flavors.user_level(),
    "edge": flavors.edge_level(),
    "node": flavors.node_level(),
    "blowfish": flavors.blowfish("policy graph", [Invariant("person", by=("county",))]),
    "invariants": flavors.given_invariants(flavors.zcdp(), [Invariant("person", by=("state",))], 1),
    "subspace": flavors.subspace("the Borel sets of the span of the queries"),
    "attribute": flavors.per_attribute("race", flavors.zcdp()),
    "pufferfish": flavors.pufferfish("models of households", "pairs of secrets"),
}


def test_named_flavors_are_all_different_and_have_the_blocks_of_the_table():
    assert len(set(NAMED.values())) == len(NAMED)
    assert NAMED["local"].input_premetric.ordered
    assert not NAMED["approximate"].input_premetric.sharpened
    assert NAMED["zcdp"].input_premetric.sharpened
    assert NAMED["pufferfish"].domain.objects == "distributions"
    assert NAMED["metric"].input_premetric.kind == "metric"
    assert NAMED["subspace"].output_premetric.events
    assert NAMED["blowfish"].input_premetric.kind == "relation"
    assert NAMED["attribute"].nearest == 1


@pytest.mark.parametrize("name", NAMED)
def test_every_named_flavor_can_be_printed(name):
    budget = GaussianCurve(1.0) if name == "trade-off" else "0.5"
    made = NAMED[name].at(budget, name=name)
    text = str(made)
    assert text.startswith(f"name:             {name}")
    assert all(
        block + ":" in text for block in ("domain", "multiverse", "input premetric", "output premetric", "budget")
    )
    assert made._repr_html_().count("<tr>") >= 7


def test_html_shows_texts_and_never_runs_them():
    html = flavors.pure(domain=Domain("<script>alert(1)</script>")).at(1)._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
