"""Errors about noisy measurement files: their folders, columns, codes and values."""

from __future__ import annotations

from pathlib import Path

from stirred.errors.kinds import DataError, OutputError, one_line

_PAGE = "docs/noisy-measurements.md describes the form that is read (stirred docs noisy-measurements)."


def noisy_folder(path: object, problem: str, remedy: str = "") -> DataError:
    """A folder of noisy measurement files is not laid out as described."""
    return DataError(
        "noisy-folder",
        f"The noisy measurement files in {path} are not laid out as described: {problem}.",
        f"{remedy} {_PAGE}".strip(),
    )


def noisy_column(file: Path, column: str, found: str, expected: str) -> DataError:
    """A column of a noisy measurement file is missing, or of another type or content than described."""
    return DataError(
        "noisy-column",
        f"{file}: the column '{column}' {one_line(found, 200)}; expected {expected}.",
        f"If the files were published in this form, the description that stirred follows is wrong there. {_PAGE}",
    )


def noisy_file(file: Path) -> DataError:
    """A noisy measurement file cannot be read."""
    return DataError(
        "noisy-file",
        f"{file} cannot be read as Parquet: it is damaged or was not copied whole.",
        f"Get the file again. {_PAGE}",
    )


def noisy_question(what: str, must: str) -> DataError:
    """A question about noisy measurement files that these files cannot answer."""
    return DataError("noisy-question", f"{what} {must}.", _PAGE)


def not_exportable(path: object, problem: str) -> OutputError:
    """Measurements that cannot be written as noisy measurement files."""
    return OutputError(
        "not-exportable",
        f"The measurements of {path} cannot be written as noisy measurement files: {problem}.",
        _PAGE,
    )
