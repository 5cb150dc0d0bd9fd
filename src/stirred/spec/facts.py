"""Facts about a mechanism and its making, by name: what the five blocks do not hold and the lint asks about.

A specification carries them as pairs, ``facts=(("rate", "1/20"), ...)``. Other names are allowed and are not looked at.
A fact that is absent is not known, which is different from false. Facts are published with the specification: state
only what the invariants or the plan determine.
"""

from __future__ import annotations

from types import MappingProxyType

MECHANISM = "mechanism"
PARAMETERS_FROM = "parameters_from"
LOOKED_AT = "looked_at"
ROW_ORDER = "row_order"
ORDER_MEANS = "order_means"
RECORDS = "records"
RATE = "rate"
RATES = "rates"
SELECTED_SHARE = "selected_share"
ROUNDS = "rounds"
LATER_ROUNDS = "later_rounds"
DECIDING_RATE = "deciding_rate"
DECIDING_STRATUM = "deciding_stratum"
LARGEST_STRATUM = "largest_stratum"
MATCH = "match"
SWAP = "swap"
NOTHING_CAN_CHANGE = "nothing_can_change"
CHANGED_SHARE = "changed_share"
UNCHANGEABLE_SHARE = "unchangeable_share"
ALONE = "alone_by_match_and_swap"
STRATA_OF_DUPLICATES = "strata_of_duplicates"
UNIQUES = "uniques"
CAP_ON_SWAPS = "cap_on_swaps"
PAIRWISE = "pairwise"
IMPUTED = "imputed"
RECORDS_PER_RESPONDENT = "records_per_respondent"
HOUSEHOLDS = "households"
ROW = "row"
HELD_NOT_RELEASED = "held_not_released"
END_TO_END = "end_to_end"
PRODUCTS_NOT_COVERED = "products_not_covered"
PART_OF = "part_of"

PERMUTATION_SWAPPING = "permutation-swapping"
"""The ``mechanism`` of the Permutation Swapping Algorithm (Algorithm 3.2.1)."""
THIS_DATA = "this data"
"""The ``parameters_from`` of parameters that were chosen by looking at the data they protect."""
TYPES_AND_FORMATS = "types and formats"
"""The ``looked_at`` of choices for which only types of columns, and how and where cells are missing, were looked at."""
VALUES = "values"
"""The ``looked_at`` of choices for which anything else in the data was looked at."""
AS_IN_THE_INPUT = "as in the input"
"""The ``row_order`` of a release whose rows stand where they stood in the confidential file."""
SURVEY = "survey"
"""The ``mechanism`` of weighted survey estimates."""
NOT_STATED = "not stated"
"""The ``row`` of several releases together, of which one does not say what a row of its file is."""

MEANINGS = MappingProxyType(
    {
        MECHANISM: f"The mechanism's name, such as '{PERMUTATION_SWAPPING}'.",
        PARAMETERS_FROM: f"Where its parameters came from; exactly '{THIS_DATA}' if they were tuned on the data.",
        LOOKED_AT: "What of the data was looked at to make its choices: 'nothing', "
        f"'{TYPES_AND_FORMATS}' or '{VALUES}'.",
        ROW_ORDER: f"The order of released rows: 'sorted', 'shuffled' or '{AS_IN_THE_INPUT}'.",
        ORDER_MEANS: "What the position of a record says, where distances depend on it.",
        RECORDS: "The number of records of the unit.",
        RATE: "Swapping: the probability that a record is selected, as the text of a fraction ('1/20').",
        RATES: "Swapping at rates by rule: the rules in words, each with its rate; the first that fits counts.",
        SELECTED_SHARE: "Swapping at rates by rule: the mean rate over all records. In several rounds: the mean "
        "probability that a record is selected in at least one.",
        ROUNDS: "Swapping: the number of rounds, if there are several. Rate, match and swap variables are the first's.",
        LATER_ROUNDS: "Swapping in several rounds: what the rounds after the first swap, in words.",
        DECIDING_RATE: "Swapping at rates by rule: the rate that decides epsilon.",
        DECIDING_STRATUM: "Swapping at rates by rule: the size of the stratum in which that rate decides epsilon.",
        LARGEST_STRATUM: "Swapping: the size of the largest stratum with two different records (b; 0 if none); "
        "at rates by rule, with two different held and two different swap values.",
        MATCH: "Swapping: the variables that divide records into strata.",
        SWAP: "Swapping: the variables that move.",
        NOTHING_CAN_CHANGE: "Whether the invariants leave no other dataset.",
        CHANGED_SHARE: "Swapping: the share of records that are expected to end with other swap values.",
        UNCHANGEABLE_SHARE: "Swapping: the share of records in strata where nothing can change.",
        ALONE: "Swapping: the number of records that are the only one with their values of the match and swap "
        "variables, a count of one that is published exactly.",
        STRATA_OF_DUPLICATES: "Swapping: the number of strata of two or more records that are all alike.",
        UNIQUES: "The number of records that stand alone in a cell of an invariant: published counts of one.",
        CAP_ON_SWAPS: "The most swaps that are made, if there is a limit.",
        PAIRWISE: "Whether records are only swapped in separate pairs.",
        IMPUTED: "Whether records, or values in them, were filled in from other records before the guarantee starts.",
        RECORDS_PER_RESPONDENT: "The most records that one respondent's answers enter, the own one included.",
        HOUSEHOLDS: "Whether persons in the data live in households.",
        ROW: "Surveys: what one row of the file is, as the plan states it. Without it the guarantee holds if each row "
        "is one whole unit.",
        HELD_NOT_RELEASED: "Whether the invariants are only taken as known, and are not released; or, as text, which "
        "of them are.",
        END_TO_END: "Whether the budget covers everything that is released from the data.",
        PRODUCTS_NOT_COVERED: "Products from the same data that the budget leaves out.",
        PART_OF: "The larger budget of which this one is a part, and what that covers, in a few words.",
    }
)
"""What each fact means."""
