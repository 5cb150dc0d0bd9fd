"""Write the explanation of a guarantee, with what anyone can at most learn, as one HTML page."""

from __future__ import annotations

from pathlib import Path

from stirred import errors
from stirred.reports.limits_section import of_explanation
from stirred.semantics import Explanation
from stirred.spec import Specification
from stirred.spec.pages import page
from stirred.verbs import explain


def report(what: Specification | Explanation | str | Path, out: str | Path) -> Path:
    """Write what a guarantee means as an HTML page that needs no other file.

    Parameters
    ----------
    what
        An explanation, a specification, or anything that :func:`stirred.read` reads.
    out
        The file to write; it must not exist.

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
    text = page(f"What {name} means", explained._repr_html_() + of_explanation(explained).html())
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as problem:
        raise errors.cannot_write(out, problem.strerror or "an input/output error") from None
    return out
