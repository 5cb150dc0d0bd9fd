"""Ways to damage a file: by its bytes, its fields, its cells; each from a seeded generator, so that it repeats."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable
from typing import Any

MARKER = "SECRET-7731"
"""Stands in cells of the confidential data, and may be printed by no command."""

NUMBERS = [
    "1e999", "-1e999", "NaN", "Infinity", "-0", "-1", "0", "1e-400", "9" * 5_000, "1" + "0" * 400, "0.1e99999999",
    "1e999999999", "18446744073709551616", "9223372036854775807", "2147483648", "1/0", "1/3", "0x10", "1_000", "１",
]  # fmt: skip
TEXTS = [
    "", "\x00", "\x1b[2K\rholds  all", "a\nholds  all", "../../etc/passwd", "/etc/passwd", "..", ".", "/dev/zero",
    "con\\..\\x", "x" * 5_000, "\u202e", "\ud7ff", "é" * 300, "{}", "[]", "null", "*", "**/*", "%s%n", "' or 1=1 --",
    "=cmd()", "\ufeff", "🙂",
]  # fmt: skip
VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**400, 0.5, -0.0, 1e308, [], {}, [[]], [None], {"": ""}, "x",
    [1] * 2_000, {"a": {"a": {"a": {}}}}, *TEXTS,
]  # fmt: skip

# -- bytes -----------------------------------------------------------------------------------------------------


def flipped(data: bytes, chance: random.Random) -> bytes:
    made = bytearray(data)
    for _ in range(chance.choice([1, 1, 1, 2, 5, 30])):
        if made:
            made[chance.randrange(len(made))] ^= 1 << chance.randrange(8)
    return bytes(made)


def cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def doubled(data: bytes, chance: random.Random) -> bytes:
    start, stop = sorted(chance.randrange(len(data) + 1) for _ in range(2))
    return data[:stop] + data[start:stop] * chance.choice([1, 1, 2, 50]) + data[stop:]


def spliced(data: bytes, chance: random.Random) -> bytes:
    first, second, third = (chance.randrange(len(data) + 1) for _ in range(3))
    return data[:first] + data[min(second, third) : max(second, third)] + data[first + chance.randrange(40) :]


def overwritten(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    new = chance.choice([b"\xff" * 8, b"\x00" * 8, b"\x7f\xff\xff\xff", b"\x80", chance.randbytes(16)])
    return data[:at] + new + data[at + len(new) :]


BYTES: list[Callable[[bytes, random.Random], bytes]] = [flipped, flipped, cut, doubled, spliced, overwritten]


def by_bytes(data: bytes, chance: random.Random) -> bytes:
    return chance.choice(BYTES)(data, chance)


# -- text ------------------------------------------------------------------------------------------------------


def renumbered(text: str, chance: random.Random) -> str:
    """One number replaced by an extreme one."""
    found = list(re.finditer(r"\d+(?:[./]\d+)?", text))
    if not found:
        return text
    one = chance.choice(found)
    return text[: one.start()] + chance.choice(NUMBERS) + text[one.end() :]


def reworded(text: str, chance: random.Random) -> str:
    """One quoted text or word replaced by a strange one."""
    found = list(re.finditer(r'"[^"\n]*"|[A-Za-z_]{3,}', text))
    if not found:
        return text
    one = chance.choice(found)
    new = chance.choice(TEXTS)
    return text[: one.start()] + (f'"{new}"' if one[0].startswith('"') else new) + text[one.end() :]


def relined(text: str, chance: random.Random) -> str:
    """Lines removed, repeated or moved."""
    lines = text.splitlines(keepends=True)
    if len(lines) < 2:
        return text
    first, second = chance.randrange(len(lines)), chance.randrange(len(lines))
    how = chance.randrange(4)
    if how == 0:
        del lines[first]
    elif how == 1:
        lines.insert(second, lines[first])
    elif how == 2:
        lines[first], lines[second] = lines[second], lines[first]
    else:
        lines.insert(
            first, chance.choice(["\n" * 100, "[" * 300, '"', "\t", "a = 1\n", "[[input]]\n", "? : -\n", "\x00"])
        )
    return "".join(lines)


def nested(text: str, chance: random.Random) -> str:
    """A value replaced by deep nesting."""
    found = list(re.finditer(r'"[^"\n]*"|\d+', text))
    if not found:
        return text
    one, depth = chance.choice(found), chance.choice([10, 70, 3_000])
    opening, closing = chance.choice([("[", "]"), ('{"a": ', "}"), ("{a = ", "}")])
    return text[: one.start()] + opening * depth + "1" + closing * depth + text[one.end() :]


def encoded(text: str, chance: random.Random) -> bytes:
    how = chance.choice(["utf-16", "utf-8-sig", "latin-1", "utf-32", "utf-7", "cp037"])
    return text.encode(how, "replace")


TOML_LINES = [
    "a." * 3_000 + "a = 1", "x = [" * 500, "rate = 1/0", "rate = inf", "rate = nan", "stirred = 1e999999999",
    "x = 1979-99-99", 'x = """', "x = '''", "[a.b.c]\n[a.b]\n[a]", "[[linked]]\n[[linked]]", "match = 5",
    "x = {a = {a = {a = 1}}}", "hold = [1, 2]", "unit = 7", "input = 3", "[input]\npath = 'x'",
]  # fmt: skip
YAML_LINES = [
    "a: &a [1]\nb: *a", "x: !!python/object/apply:os.system ['true']", "x: !!binary xx", "? [a]\n: b", "x: 1:1:1:1",
    "<<: {a: 1}", "- - - - - - x", "x: " + "[" * 200, "x: 0o7777777777777777777777", "---\n---", "%YAML 9.9", "x: .inf",
]  # fmt: skip


def with_line(lines: list[str]) -> Callable[[str, random.Random], str]:
    def insert(text: str, chance: random.Random) -> str:
        all_lines = text.splitlines(keepends=True)
        all_lines.insert(chance.randrange(len(all_lines) + 1), chance.choice(lines) + "\n")
        return "".join(all_lines)

    return insert


def by_text(data: bytes, chance: random.Random, *more: Callable[[str, random.Random], str]) -> bytes:
    """One of the ways to damage a text, or some of them after one another."""
    text = data.decode("utf-8")
    ways = [renumbered, renumbered, reworded, reworded, relined, nested, *more, *more]
    for _ in range(chance.choice([1, 1, 1, 2, 4])):
        text = chance.choice(ways)(text, chance)
    how = chance.randrange(12)
    if how == 0:
        return encoded(text, chance)
    whole = text.encode("utf-8", "surrogatepass")
    return by_bytes(whole, chance) if how == 1 else whole


# -- JSON ------------------------------------------------------------------------------------------------------


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in inside:
        found += places(inner, (*path, key))
    return found


def by_fields(data: bytes, chance: random.Random) -> bytes:
    """A field of a JSON document removed, renamed, doubled, or given another value or type."""
    whole = json.loads(data)
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        chosen = [path for path in places(whole) if path]
        if not chosen:
            break
        *parents, last = chance.choice(chosen)
        holder = whole
        for key in parents:
            holder = holder[key]
        how = chance.randrange(6)
        if how == 0:
            del holder[last]
        elif how == 1 and isinstance(holder, dict):
            holder[chance.choice(TEXTS)] = holder.pop(last)
        elif how == 1:
            holder.insert(last, holder[last])
        elif how == 2 and isinstance(holder[last], int | float) and not isinstance(holder[last], bool):
            holder[last] += chance.choice([1, -1, 0.5, 1e-9, 2**40])
        elif how == 3 and isinstance(holder, dict):
            holder[chance.choice(["more", "../x", "words", "name"])] = copy.deepcopy(chance.choice(VALUES))
        elif how == 4:
            holder[last] = [holder[last]] * chance.choice([1, 2])
        else:
            holder[last] = copy.deepcopy(chance.choice(VALUES))
    text = json.dumps(whole, indent=2, ensure_ascii=False)
    if chance.randrange(5) == 0:
        text = chance.choice([renumbered, nested, relined])(text, chance)
    return text.encode("utf-8", "surrogatepass")


def by_json(data: bytes, chance: random.Random) -> bytes:
    how = chance.randrange(10)
    return by_bytes(data, chance) if how == 0 else by_text(data, chance) if how < 3 else by_fields(data, chance)


# -- cells -----------------------------------------------------------------------------------------------------


def by_cells(data: bytes, chance: random.Random) -> bytes:
    """A CSV file with strange cells, quotes, line ends or lengths."""
    lines = data.decode("utf-8").splitlines()
    at = chance.randrange(len(lines))
    cells = lines[at].split(",")
    new = chance.choice(
        [MARKER, *TEXTS, *NUMBERS, '"', '"a"b"', '"x\ny"', ",", ",,,", f'"{MARKER}', "\x00" * 20, "NA", " "]
    )
    how = chance.randrange(8)
    if how < 4:
        cells[chance.randrange(len(cells))] = new
        lines[at] = ",".join(cells)
    elif how == 4:
        lines[at] = lines[at] + new
    elif how == 5:
        lines = lines[:at]
    elif how == 6:
        lines[at] = "x" * chance.choice([10, 10_000, 1_000_000])
    else:
        return data.replace(b"\n", chance.choice([b"\r\n", b"\r", b"\n\n", b"\x00"]))
    whole = ("\n".join(lines) + chance.choice(["\n", "", "\n\n"])).encode("utf-8", "surrogatepass")
    return by_bytes(whole, chance) if chance.randrange(6) == 0 else whole
