"""What several commands share: options, those that mechanisms add, names that a shell completes, and new files.

Options may depend on the mechanism: all are accepted, then checked against the plan's mechanism. Such a command is a
function of typer whose last parameter is ``given``. It is registered with the options that any mechanism has for it;
``given`` then holds what was typed, and :func:`chosen` turns it into arguments of one mechanism's function or raises
for an option that this mechanism does not have.

Where a file may be named as well as a deployment, page, mode or mechanism, an unknown beginning offers no name, and
shells then offer files.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from stirred import errors, mechanisms
from stirred._lazy import later
from stirred._progress import OnTerminal
from stirred._threads import use_threads
from stirred.cli.printing import note, print_json
from stirred.releases.mechanism import Mechanism, Option, Verb

if TYPE_CHECKING:
    import pyarrow as pa

    from stirred.semantics.pictures.readable import NotDrawn
    from stirred.semantics.pictures.shapes import AnyPicture

Given = Mapping[str, Any]
"""By the option's name, what was typed; options that were not given are not in it."""
_THREADS = inspect.Parameter(
    "threads",
    inspect.Parameter.KEYWORD_ONLY,
    default=None,
    annotation=Annotated[
        int | None,
        typer.Option(
            help="How many threads compute; results do not depend on it. Default: STIRRED_THREADS, or all cores.",
            min=1,
            max=9999,
        ),
    ],
)
_AS_JSON = Option("--json", "Print the result as JSON; stirred docs json lists its fields.", "as_json", bool)


def with_options(function: Callable[..., None], verb: str) -> Callable[..., None]:
    """``function`` with the options that any mechanism has for ``verb``, in place of its parameter ``given``."""
    offered: dict[str, tuple[Option, list[str]]] = {}
    for mechanism in mechanisms.every():
        for option in mechanism.options.get(verb, ()):
            offered.setdefault(option.name, (option, []))[1].append(mechanism.name)
    options = [(option, _heading(option, who)) for option, who in offered.values()]
    own = [parameter for parameter in _parameters(function) if parameter.name != "given"]

    def run(**values: Any) -> None:
        typed = {option.name: values.pop(_keyword(option)) for option, _ in options}
        function(**values, given={name: value for name, value in typed.items() if _was_given(value)})

    return _dressed(run, function.__name__, function.__doc__ or "", [*own, *(_parameter(*one) for one in options)])


def computing(function: Callable[..., None]) -> Callable[..., None]:
    """``function`` with the option ``--threads``, which every command has that computes for long."""
    return _dressed(function, function.__name__, function.__doc__ or "", _parameters(function))


def _parameters(function: Callable[..., None]) -> list[inspect.Parameter]:
    hints = get_type_hints(function, include_extras=True)
    own = inspect.signature(function).parameters
    return [parameter.replace(annotation=hints[name]) for name, parameter in own.items()]


def of_verb(verb: Verb) -> Callable[..., None]:
    """The command for a verb that only one mechanism has; with ``--json``, also where the verb has no such option."""
    own_json = any(option.name == "--json" for option in verb.options)
    options = verb.options if own_json else (*verb.options, _AS_JSON)

    def run(**values: Any) -> None:

        as_json = not own_json and values.pop(_keyword(_AS_JSON))
        arguments = {option.keyword: option.value(values[_keyword(option)]) for option in verb.options}
        if verb.pictures is not None:
            figures, paper = arguments.pop("figures", None), bool(arguments.pop("paper", False))
            check_new(figures=figures, paper=paper)
            if figures is not None:
                if not (pictures := verb.pictures(**arguments)):
                    raise errors.nothing_to_draw("for this plan the command has no picture", "Leave --figures out.")
                save_pictures(pictures, figures, paper=paper)
        with OnTerminal() as progress:
            progress.stage(f"running stirred {verb.name}")
            lines = list(verb.run(**arguments) or ())
        if as_json:
            print_json({"stirred_command": 1, "command": verb.name, "said": lines})
            return
        for line in lines:
            print(line)

    return _dressed(run, verb.name, verb.help, [_parameter(option) for option in options])


def chosen(mechanism: Mechanism, verb: str, given: Given) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments for reading the plan, and for the mechanism's function, from what was typed."""
    own = {option.name: option for option in mechanism.options.get(verb, ())}
    for name in given:
        if name not in own:
            keyword = name.lstrip("-").replace("-", "_")
            instead = mechanism.instead.get(keyword, "") if verb == "estimate" else ""
            raise errors.option_not_for(name, mechanism.name, list(own), instead)
    of_plan = {own[name].keyword: own[name].value(value) for name, value in given.items() if own[name].of_plan}
    others = {own[name].keyword: own[name].value(value) for name, value in given.items() if not own[name].of_plan}
    return of_plan, others


def _dressed(
    run: Callable[..., None], name: str, help: str, parameters: Sequence[inspect.Parameter]
) -> Callable[..., None]:
    """``run`` with a signature that typer can read, and the option ``--threads``."""

    def command(threads: int | None, **values: Any) -> None:
        if threads is not None:
            use_threads(threads)
        run(**values)

    first = [one for one in parameters if one.default is inspect.Parameter.empty]
    ordered = [*first, *(one for one in parameters if one.default is not inspect.Parameter.empty), _THREADS]
    command.__name__, command.__doc__ = name, help
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in ordered]
    )
    command.__annotations__ = {one.name: one.annotation for one in ordered}
    return command


def _was_given(value: Any) -> bool:
    return value is not None and value is not False and value != []


def _keyword(option: Option) -> str:
    return option.name.lstrip("-").replace("-", "_").lower()


def _heading(option: Option, who: Sequence[str]) -> str | None:
    """The heading in ``--help`` of an option that the mechanisms ``who`` have; None for one that all have."""
    if option.of_measurements:
        return f"Options for noisy measurement files ({', '.join(who)})"
    if len(who) == len(list(mechanisms.every())):
        return None
    return f"Options for {' and '.join(who)}"


def _parameter(option: Option, heading: str | None = None) -> inspect.Parameter:
    kind: Any = StrEnum(_keyword(option), list(option.choices)) if option.choices else option.type
    if option.several:
        kind = list[kind]
    parameter = inspect.Parameter(_keyword(option), inspect.Parameter.KEYWORD_ONLY)
    if option.argument:
        return parameter.replace(annotation=Annotated[kind, typer.Argument(help=option.help)])
    default = False if option.type is bool else option.default
    described = typer.Option(option.name, help=option.help, rich_help_panel=heading)
    shown: Any = Annotated[kind if default is not None else kind | None, described]
    return parameter.replace(annotation=shown, default=default)


_WIDTH = 110
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON; stirred docs json lists its fields.")]
RowsAsJson = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON, with all rows; stirred docs json lists its fields.")
]
MostRows = Annotated[
    int | None,
    typer.Option(
        help="Refuse a released table with more rows than this, since a small file can claim a billion rows. Default: "
        "500 million values (rows times columns), and 64 more for each byte of the file.",
        min=0,
    ),
]


def names(text: str) -> tuple[str, ...]:
    """Column names separated by commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def check_new(*targets: Path | None, figures: Path | None = None, paper: bool = False) -> None:
    """Raise, before anything is computed, if an output exists already or its folder does not, or if figures for papers
    are asked for, and no folder for figures."""
    from stirred.releases.folder.atomic import check_target

    if paper and figures is None:
        raise errors.StirredError(
            "option-needs", "The option --paper has no effect without --figures FOLDER.", "Add --figures FOLDER."
        )
    for target in (*targets, figures):
        if target is not None:
            check_target(target.absolute())


def fitted(text: str) -> str:
    """Lines such as "name:   words" wrapped to the page width, with the words below one another."""
    indent = " " * 18
    return "\n".join(textwrap.fill(line, _WIDTH, subsequent_indent=indent) for line in text.splitlines())


Paper = Annotated[
    bool,
    typer.Option(
        "--paper",
        help="With --figures: draw for papers, without titles, as PDF and SVG in the widths of one and two columns; "
        "captions that name the guarantee are text files beside them.",
    ),
]
"""The option of every command that draws."""


def save_pictures(made: Iterable[AnyPicture | NotDrawn], folder: Path, *, paper: bool = False) -> None:
    """Save pictures into a new folder, and print their paths, and sentences in place of those that show nothing.

    Without any picture no folder is made.
    """
    from stirred.reports.figures import save, save_for_paper
    from stirred.semantics.pictures.readable import NotDrawn

    pictures = []
    for one in made:
        if isinstance(one, NotDrawn):
            note(one.words)
        else:
            pictures.append(one)
    if not pictures:
        note(f"There is nothing to draw, so {folder} was not made.")
        return
    try:
        folder.mkdir()
    except OSError as problem:
        raise errors.cannot_write(folder, problem.strerror or "an input/output error") from None
    for picture in pictures:
        for path in save_for_paper(picture, folder) if paper else save(picture, folder):
            note(f"wrote {path}")


def write_new(path: Path, text: str) -> None:
    """Write a file that must not exist yet."""
    from stirred.releases.folder.atomic import new_file

    with new_file(path) as file:
        file.write(text.encode())


def write_parquet(path: Path, table: pa.Table) -> None:
    """Write a Parquet file that must not exist yet."""
    import pyarrow.parquet as pq

    from stirred.releases.folder.atomic import new_file

    with new_file(path) as file:
        pq.write_table(table, file)


def _beginning(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """What a shell is offered: those of some names that begin as what was typed."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


_accounts, _names = (later(f"stirred.spec.known_deployments.{module}") for module in ("accounts", "names"))
deployment_names = _beginning(lambda: sorted({*_accounts.accounts(), *_names.titles()}))
complete_names = _beginning(lambda: sorted(_names.titles()))
"""Known deployments with a full guarantee."""
page_names = _beginning(lambda: sorted(later("stirred.cli.about").pages()))
mechanism_names = _beginning(mechanisms.names)
mode_names = _beginning(lambda: later("stirred.releases.context").modes())
