"""Reading, encoding, grouping and writing tables. Columns are encoded once; nothing here draws randomness."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.tables.columns import Column as Column, Table as Table
    from stirred.tables.reading.inputs import Input as Input, InputOptions as InputOptions, open_input as open_input

__getattr__, __dir__ = lazy(__name__)
