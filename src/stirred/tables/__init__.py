"""Reading, encoding, grouping and writing tables. Columns are encoded once; nothing here draws randomness."""

from stirred.tables.columns import Column, Table
from stirred.tables.inputs import Input, InputOptions, open_input

__all__ = ["Column", "Input", "InputOptions", "Table", "open_input"]
