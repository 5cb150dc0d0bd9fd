"""Generated data sets for examples, tests and benchmarks.

The only place outside the tests and benchmarks where ``numpy.random`` is allowed: nothing here touches
confidential data, so nothing drawn here is part of a guarantee.
"""

from stirred.tables.synthetic.examples import (
    DWELLINGS,
    PUBLISHED_MAPE,
    TABLE_3_1,
    TWO_PERSON_HOUSEHOLDS,
    CountyRow,
    households_and_persons,
    massachusetts_1940,
    records,
)

__all__ = [
    "DWELLINGS",
    "PUBLISHED_MAPE",
    "TABLE_3_1",
    "TWO_PERSON_HOUSEHOLDS",
    "CountyRow",
    "households_and_persons",
    "massachusetts_1940",
    "records",
]
