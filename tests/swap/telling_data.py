"""Inputs that would tell much if anything of them but their rows came through: telling orders, ids and markers."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from stirred.swap.plan.fields import SwapPlan

NEVER = "1/1000000000000000000"
"""A rate at which nobody moves, but for one run in 10^14."""

DOCUMENTS = {"README.txt", "certificate.json", "data_dictionary.json", "manifest.json", "specification.json"}


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a release, without the random identity of its draw."""
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    stated = files["certificate.json"]
    nonce = json.loads(stated)["nonce"].encode()
    assert sum(nonce in content for content in files.values()) == 1, "the nonce stands in the certificate only"
    files["certificate.json"] = stated.replace(nonce, b"")
    digest = hashlib.sha256(stated).hexdigest().encode()
    files["manifest.json"] = files["manifest.json"].replace(digest, b"")
    return files


def microdata(rows: int = 600, seed: int = 1) -> pl.DataFrame:
    """Records with a telling order: row numbers as ids, sorted by the swap variable."""
    random = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "county": random.choice(["b", "a", "c"], rows),
            "size": random.integers(1, 4, rows),
            "tenure": random.choice(["rented", "owned", "other"], rows),
            "rooms": random.integers(1, 9, rows),
        }
    )
    return frame.sort("county", descending=True).with_row_index("id", 1)


def main_plan(**changes: Any) -> SwapPlan:
    fields: dict[str, Any] = {
        "match": ["size"],
        "swap": ["county"],
        "hold": "rest",
        "id": "id",
        "rate": NEVER,
        "allow": ["few-change"],
        "chosen_from": "public",
        "tables": [["county", "tenure"]],
        "saturated": True,
    }
    return SwapPlan(**(fields | changes))


def reordered(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.sample(fraction=1, shuffle=True, seed=5)


def households(number: int = 300, seed: int = 2) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Households sorted by county with persons in a telling order, head first; markers in ids and dropped columns."""
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 6, number)
    names = np.array([f"SECRET-H{i:05}" for i in range(number)])
    county = np.sort(random.choice(["north", "south", "west"], number))
    main = pl.DataFrame(
        {
            "household": names,
            "county": county,
            "class": np.minimum(sizes, 3),
            "tenure": random.choice(["owned", "rented"], number),
            "address": [f"SECRET street {i}" for i in range(number)],
        }
    )
    owner = np.repeat(np.arange(number), sizes)
    place = np.concatenate([np.arange(size) for size in sizes])
    persons = pl.DataFrame(
        {
            "person": [f"SECRET-P{i:06}" for i in range(len(owner))],
            "household": names[owner],
            "role": np.array(["1 head", "2 spouse", "3 child"])[np.minimum(place, 2)],
            "age": random.integers(0, 90, len(owner)),
            "county": county[owner],
            "home": county[owner],
        }
    )
    return main, persons


def household_plan(**changes: Any) -> SwapPlan:
    fields: dict[str, Any] = {
        "unit": "household",
        "match": ["class"],
        "swap": ["county"],
        "hold": ["tenure"],
        "drop": ["address"],
        "id": "household",
        "rate": "1/2",
        "chosen_from": "public",
        "linked": [
            {
                "name": "persons",
                "link": "household",
                "id": "person",
                "hold": ["role", "age"],
                "copies": {"home": "county"},
            }
        ],
    }
    return SwapPlan(**(fields | changes))
