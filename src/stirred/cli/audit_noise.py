"""``stirred audit noise``: do draws have the law that they should have?"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from stirred import errors
from stirred.audit.results import FALSE_ALARM

if TYPE_CHECKING:
    from stirred.audit.noise_laws import NoiseLaw
    from stirred.audit.results import Audit


class LawName(StrEnum):
    """Laws that draws can be audited against."""

    gaussian = "gaussian"
    laplace = "laplace"
    integers = "integers"
    coin = "coin"


def noise(
    law: Annotated[LawName, typer.Option(help="The distribution that the random numbers should have.")],
    file: Annotated[
        str | None,
        typer.Argument(
            help="The random numbers: a text file with one number on each line ('-' reads standard input), or a table "
            "with --column."
        ),
    ] = None,
    sigma2: Annotated[
        str | None,
        typer.Option(help="With --law gaussian: the parameter sigma^2 of the discrete Gaussian, such as 10 or 3/7."),
    ] = None,
    scale: Annotated[
        str | None,
        typer.Option(help="With --law laplace: the scale of the discrete Laplace distribution, such as 2 or 3/7."),
    ] = None,
    below: Annotated[
        str | None, typer.Option(help="With --law integers: they are uniform from 0 to this number minus 1.")
    ] = None,
    probability: Annotated[
        str | None, typer.Option(help="With --law coin: the probability of a 1, such as 1/20.")
    ] = None,
    column: Annotated[str | None, typer.Option(help="The column with the random numbers, if FILE is a table.")] = None,
    own: Annotated[
        int | None, typer.Option(help="In place of FILE: test stirred's own sampler with this number of draws.", min=1)
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            help="In place of FILE: test a program that prints one number on each line. It is run twice, to detect a "
            "fixed seed."
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option(help="With --command: the longest time that a run may take, in seconds.", min=0.1)
    ] = 600.0,
    false_alarm: Annotated[
        float, typer.Option(help="The probability with which a correct sampler is reported as wrong.")
    ] = FALSE_ALARM,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON; stirred docs json lists its fields.")
    ] = False,
) -> None:
    """Test random numbers: whether they have the distribution that they should have, and whether they depend on each
    other.

    Ends with how large an error this number of draws can detect. Exits with 1 if something is wrong.
    """
    if sum(given is not None for given in (file, own, command)) != 1:
        raise errors.audit_question("What is audited", "must be one of FILE, --own or --command")
    if column is not None and (file is None or file == "-"):
        raise errors.audit_question("--column", "must go with a FILE that is a table")
    chosen = _law(law, {"sigma2": sigma2, "scale": scale, "below": below, "probability": probability})
    audit = _audited(chosen, file, column, own, command, seconds, false_alarm)
    print(audit.to_json() if as_json else audit)
    if not audit.passed:
        raise typer.Exit(1)


_PARAMETERS = {"gaussian": "sigma2", "laplace": "scale", "integers": "below", "coin": "probability"}


def _law(name: LawName, given: dict[str, str | None]) -> NoiseLaw:
    from stirred.audit import noise_laws

    wanted = _PARAMETERS[name]
    if [key for key, value in given.items() if value is not None] != [wanted]:
        raise errors.audit_question(f"The law '{name}'", f"must have --{wanted}, and no parameter of another law")
    made: NoiseLaw = getattr(noise_laws, name)(given[wanted])
    return made


def _audited(
    law: NoiseLaw, file: str | None, column: str | None, own: int | None, command: str | None, seconds: float,
    false_alarm: float,
) -> Audit:  # fmt: skip
    import numpy as np

    from stirred.audit.drawn_numbers import printed_draws, read_draws
    from stirred.audit.noise_battery import audit_noise

    if file is not None:
        return audit_noise(read_draws(file, column), law, false_alarm=false_alarm)
    if own is not None:
        audit = audit_noise(law.draw(own), law, false_alarm=false_alarm)
        return replace(audit, about=(*audit.about, "They were drawn by stirred's own sampler, for this audit."))
    assert command is not None
    runs = [printed_draws(command, seconds) for _ in range(2)]
    audit = audit_noise(np.concatenate(runs), law, false_alarm=false_alarm)
    told = f"The first {len(runs[0]):,} are of one run of the program, the others of a second run."
    return replace(audit, runs=2, about=(*audit.about, told))
