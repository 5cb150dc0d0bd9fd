"""Settings of the documentation site: Markdown pages of docs/, and the reference from docstrings.

Nothing here may name an address from which a browser would fetch something: the site is read without a network.
"""

from __future__ import annotations

import re

from stirred import __version__

project = "stirred"
author = "the authors of stirred"
copyright = ""
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns: list[str] = []

myst_heading_anchors = 6  # links to headings work as on the pages themselves
# JSON blocks of the pages may be excerpts; numbers of equal forms are named by what they print.
suppress_warnings = ["misc.highlighting_failure", "ref.python"]

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False
add_module_names = False
napoleon_google_docstring = False

html_theme = "furo"
html_title = f"stirred {__version__}"
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False  # it would fetch each page that is found, which no browser allows for files
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {"light_css_variables": {"font-stack": "system-ui, sans-serif"}}


def escape_bars(app, what, name, object_, options, lines):
    """Docstrings write |x| for an absolute value, which reStructuredText would take for a substitution."""
    for at, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = re.split(r"(``.*?``)", line)
            lines[at] = "".join(part if part.startswith("``") else part.replace("|", r"\|") for part in parts)


def setup(app):
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", escape_bars)
