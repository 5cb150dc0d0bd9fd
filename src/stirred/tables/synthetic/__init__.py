"""Generated data sets for examples, tests and benchmarks.

The only place outside the tests and benchmarks where ``numpy.random`` is allowed: nothing here touches
confidential data, so nothing drawn here is part of a guarantee.
"""

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.tables.synthetic.examples import (
        DWELLINGS as DWELLINGS,
        PUBLISHED_MAPE as PUBLISHED_MAPE,
        TABLE_3_1 as TABLE_3_1,
        TWO_PERSON_HOUSEHOLDS as TWO_PERSON_HOUSEHOLDS,
        CountyRow as CountyRow,
        households_and_persons as households_and_persons,
        massachusetts_1940 as massachusetts_1940,
        records as records,
    )

__getattr__, __dir__ = lazy(__name__)
