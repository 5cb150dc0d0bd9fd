"""Write the explanation of a guarantee as one HTML page, with limits of learning and the context of the release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stirred import errors
from stirred.reports.context_section import as_html, of_release
from stirred.reports.limits_section import of_explanation
from stirred.semantics import Explanation
from stirred.spec import Specification
from stirred.spec.pages import page
from stirred.verbs import explain

if TYPE_CHECKING:
    from stirred.releases.context import Context


def report(what: Specification | Explanation | str | Path, out: str | Path, *, context: Context | None = None) -> Path:
    """Write what a guarantee means as an HTML page that needs no other file.

    Parameters
    ----------
    what
        An explanation, a specification, or anything that :func:`stirred.read` reads.
    out
        The file to write; it must not exist.
    context
        Answers about the five safes, as a plan has them; by default those of the release, where ``what`` is its folder.

    Returns
    -------
    Path
        The file that was written.

    Examples
    --------
    >>> import tempfile, stirred
    >>> stirred.report("rho=1/2", tempfile.mkdtemp() + "/meaning.html").suffix
    '.html'
    """
    out = Path(out)
    if out.exists():
        raise errors.output_exists(out)
    explained = what if isinstance(what, Explanation) else explain(what)
    name = explained.specification.name or (str(what) if isinstance(what, str | Path) else "this guarantee")
    if context is None and isinstance(what, str | Path):
        context = of_release(what)
    text = page(f"What {name} means", explained._repr_html_() + of_explanation(explained).html() + as_html(context))
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as problem:
        raise errors.cannot_write(out, problem.strerror or "an input/output error") from None
    return out
