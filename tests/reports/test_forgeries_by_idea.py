"""Forged reports and READMEs, by idea: each is refused, or ends with 4 and a first line that says what is not compared.

In every folder the manifest is written anew, so that only what a document says can show the forgery. A code of 4 is
expected only where another version of a program is claimed: then shapes or sentences cannot be compared, and the first
line must name them.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from small_releases import release_into

import stirred
from stirred.releases.folder.manifest import write_manifest
from stirred.releases.verdicts import State

Forge = Callable[[str], str]

OTHER_ALTAIR = "altair 5.0.0"
LATER, EARLIER = "99.0.0", "0.6.0"


def swapped(old: str, new: str, count: int = 1) -> Forge:
    return lambda text: text.replace(old, new, count)


def pattern(old: str, new: str, count: int = 1) -> Forge:
    return lambda text: re.sub(old, new, text, count=count, flags=re.DOTALL)


def both(*changes: Forge) -> Forge:
    def change(text: str) -> str:
        for one in changes:
            text = one(text)
        return text

    return change


def inside_the_drawing(what: str) -> Forge:
    return swapped("</desc>", f"</desc>{what}")


CURVE = r'<path d="M[^"]{200,}"[^<>]*?/>'
"""A path of many points: a curve, not a frame."""


def of_the_curve(old: str, new: str) -> Forge:
    """A change of the first curve alone."""
    return lambda page: re.sub(CURVE, lambda found: re.sub(old, new, found[0], count=1), page, count=1)


DRAWINGS: dict[str, Forge] = {
    "a colour that is none": of_the_curve(r'stroke="#(....)(..)"', r'stroke="#\1.1\2"'),
    "a colour with other digits": of_the_curve(r'stroke="#....', 'stroke="#FFFF'),
    "a drawing that is cropped": pattern(r'viewBox="0 0 [0-9]+ [0-9]+"', 'viewBox="0 0 3 3"'),
    "a drawing that is shown far away": pattern(r'viewBox="0 0 ', 'viewBox="900 900 '),
    "a drawing without a view": pattern(r' viewBox="[^"]*"', ""),
    "a view that is none": pattern(r'viewBox="[^"]*"', 'viewBox=""'),
    "a curve half seen": of_the_curve("<path ", '<path opacity="0.5" '),
    "opacity changed by half": pattern('opacity="1"', 'opacity="0.5"', 0),
    "opacity as it may be written otherwise": pattern('opacity="1"', 'opacity="1.0"'),
    "a width changed by half": of_the_curve(r'stroke-width="[0-9.]+"', 'stroke-width="0.1"'),
    "a curve removed": pattern(CURVE, ""),
    "a curve twice": pattern(f"({CURVE})", r"\1\1"),
    "a curve that is not displayed": of_the_curve("<path ", '<path display="none" '),
    "a curve that is not visible": of_the_curve("<path ", '<path visibility="hidden" '),
    "a curve dashed": of_the_curve("<path ", '<path stroke-dasharray="0,9" '),
    "a curve moved by a pixel": of_the_curve("<path ", '<path transform="translate(0,1)" '),
    "groups around a curve moved a little each": pattern(
        r"translate\((\d+),(\d+)\)", lambda found: f"translate({found[1]},{int(found[2]) + 0.4})", 0
    ),
    "a group turned": pattern(r"rotate\(-90\)", "rotate(-89.8)"),
    "a group made smaller": pattern(r'transform="translate\((\d+),(\d+)\)"', r'transform="scale(1)"'),
    "a curve that ends early": of_the_curve(r'( d="M[^"]{100}[^L"]*)[^"]*"', r'\1"'),
    "a coordinate that ends the path": of_the_curve(r"L([0-9]+)", r"L\1.."),
    "a coordinate with another letter": of_the_curve(r"L([0-9]+)", r"L0x\1"),
    "a label removed": pattern(r"<text [^<>]*>[^<>]*[a-z][^<>]*</text>", ""),
    "a label of another size": pattern('font-size="[0-9]+px"', 'font-size="1px"'),
    "a label in other words": pattern(">probability of detection[^<]*<", ">nobody can be identified<"),
    "a label with letters that look alike": pattern(">probability of d", ">probability of \u0501"),
    "an order of layers": pattern(f"({CURVE})(.*?)({CURVE})", r"\3\2\1"),
    "a white cover": pattern(r"</g></svg>", '<rect width="999" height="999" fill="white"/></g></svg>'),
}  # fmt: skip

WORDS: dict[str, Forge] = {
    "a sentence": swapped("<main>", "<main><p>Approved by the census bureau.</p>"),
    "a number": pattern(r"epsilon = [0-9.]+", "epsilon = 0.01", 0),
    "a row of foreign words": pattern(r"(this report</th><td>)", r"\1audited-by-the-census-bureau 2026, "),
    "a foreign program": pattern(r", altair ", ", safe-for-everybody 1.0, altair "),
    "a version that speaks": pattern(r"altair [0-9.]+", "altair 1.approved"),
    "a program twice": pattern(r"(altair [0-9.]+)", r"\1, \1"),
    "programs in another order": pattern(r"(altair [0-9.]+), (vl-convert-python [^<]*)", r"\2, \1"),
    "another numpy in the report alone": pattern(r"numpy [0-9.]+", "numpy 1.2.3"),
    "another stirred in the report alone": pattern(r"stirred [0-9][^,]*", "stirred 0.6.0"),
    "no program": pattern(r"(this report</th><td>)[^<]*", r"\1"),
    "two rows": pattern(r"(<tr><th scope=\"row\">this report</th><td>.*?</tr>)", r"\1\n\1"),
    "a style that hides": swapped("</style>", ".short { display: none }</style>"),
    "a style that shows other words": swapped("</style>", 'h1::after { content: "Safe" }</style>'),
    "a title": pattern("<title>[^<]*</title>", "<title>Safe</title>"),
    "a title of a drawing": pattern(r'(<title id="figure-1-title">)[^<]*', r"\1Safe"),
    "a description for who cannot see": pattern(r'(<desc id="figure-1-desc">)[^<]*', r"\1Safe"),
    "a label for who cannot see": pattern('aria-label="[^"]*"', 'aria-label="Safe"'),
    "a part that is hidden": swapped("<section", '<section hidden="hidden"'),
    "an attribute in capitals": swapped("<section", '<section HIDDEN="hidden"'),
    "a part that is not read aloud": swapped("<section", '<section aria-hidden="true"'),
    "a part from right to left": swapped("<main>", '<main dir="rtl">'),
    "a comment": swapped("<main>", "<main><!-- safe -->"),
    "another doctype": swapped("<!doctype html>", '<!DOCTYPE html PUBLIC "-//W3C//DTD HTML 3.2//EN">'),
    "no doctype": swapped("<!doctype html>\n", ""),
    "words after the end": lambda page: page + "<p>Safe</p>",
    "a space after the end": lambda page: page + " ",
    "words before the beginning": lambda page: "Safe " + page,
    "a byte order mark": lambda page: "\ufeff" + page,
    "windows line ends": lambda page: page.replace("\n", "\r\n"),
    "another encoding claimed": swapped('charset="utf-8"', 'charset="utf-7"'),
    "a letter as a number": swapped("In short", "&#73;n short"),
    "an accent in two letters": swapped("Bill of", "Bill\u200b of"),
    "a policy that allows more": swapped("default-src 'none'", "default-src *"),
    "no words": lambda page: "",
}

ACTIVE: dict[str, str] = {
    "a script": "<script>document.title = 1</script>",
    "a script in capitals": "<SCRIPT>document.title = 1</SCRIPT>",
    "a script without its end": "<script src=//host>",
    "a script of a drawing": '<svg xmlns="http://www.w3.org/2000/svg"><script>1</script></svg>',
    "a handler": '<p onclick="alert(1)">words</p>',
    "a handler in capitals": '<p ONMOUSEOVER="alert(1)">words</p>',
    "a handler after a slash": '<p/onclick="alert(1)">words</p>',
    "a handler without quotes": "<p onclick=alert(1)>words</p>",
    "a handler in single quotes": "<p onclick='alert(1)'>words</p>",
    "a handler after a line end": '<p\nonclick="alert(1)">words</p>',
    "a handler of a drawing": '<svg onload="alert(1)"></svg>',
    "a link that runs": '<a href="javascript:alert(1)">words</a>',
    "a link that runs, hidden": '<a href="&#106;avascript:alert(1)">words</a>',
    "a link outside": '<a href="https://host.example">words</a>',
    "a link to the same host": '<a href="//host.example">words</a>',
    "a link to a file": '<a href="README.txt">words</a>',
    "a link of data": '<a href="data:text/html,words">words</a>',
    "a link of a drawing": '<svg><a xlink:href="https://host.example"><text>words</text></a></svg>',
    "a use of a drawing": '<svg><use href="//host.example/x.svg#a"/></svg>',
    "an image of a drawing": '<svg><image href="//host.example/x.png"/></svg>',
    "an animation": '<svg><animate attributeName="fill" to="white"/></svg>',
    "a colour from elsewhere": '<svg><rect fill="url(https://host.example)"/></svg>',
    "a colour from elsewhere, hidden": '<svg><rect fill="ur&#108;(//host.example)"/></svg>',
    "a colour from elsewhere, escaped": '<svg><rect fill="\\75rl(//host.example)"/></svg>',
    "a foreign object": "<svg><foreignObject>words</foreignObject></svg>",
    "a frame": '<iframe src="//host.example"></iframe>',
    "a frame with a page in it": '<iframe srcdoc="words"></iframe>',
    "an object": '<object data="//host.example"></object>',
    "an embedding": '<embed src="//host.example">',
    "an image": '<img src="//host.example/x.png">',
    "a sound": '<audio src="//host.example/x.ogg"></audio>',
    "a form": '<form action="//host.example"><input name="x"></form>',
    "a button": "<button>words</button>",
    "a base": '<base href="//host.example">',
    "a link element": '<link rel="stylesheet" href="//host.example/x.css">',
    "another page after a while": '<meta http-equiv="refresh" content="0; url=//host.example">',
    "a policy of one's own": '<meta http-equiv="Content-Security-Policy" content="script-src *">',
    "a style of an element": '<p style="background: url(//host.example)">words</p>',
    "styles from elsewhere": "<style>@import '//host.example/x.css';</style>",
    "a background from elsewhere": "<style>p { background: url(//host.example) }</style>",
    "a background from elsewhere, escaped": "<style>p { background: \\75rl(//host.example) }</style>",
    "a comment that ends in a script": "<!--><script>1</script>-->",
    "data that are a script": "<![CDATA[<script>1</script>]]>",
    "a template": "<template>words</template>",
    "text that is none": "<noscript><p>words</p></noscript>",
    "an unknown element": "<x-safe>words</x-safe>",
    "a control character": "<p>words\x1b[2K</p>",
    "words from right to left": "<p>words\u202ewords</p>",
}


@pytest.fixture(scope="module")
def released(tmp_path_factory) -> Path:
    return release_into(tmp_path_factory.mktemp("forged") / "release", "swap")


@pytest.fixture
def folder(released, tmp_path) -> Path:
    return Path(shutil.copytree(released, tmp_path / "release"))


def forge(folder: Path, name: str, change: Forge, version: str | None = None) -> None:
    """Change a document, claim a version, and write the manifest anew."""
    before = (folder / name).read_text(encoding="utf-8")
    after = change(before)
    assert after != before
    (folder / name).write_text(after, encoding="utf-8", newline="")
    if version is not None:
        certificate = folder / "certificate.json"
        fields = json.loads(certificate.read_text(encoding="utf-8"))
        fields["versions"]["stirred"] = version
        certificate.write_text(json.dumps(fields, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    write_manifest(folder)


def code_and_first_line(folder: Path, command) -> tuple[int, str]:
    ended = command("verify", folder)
    assert "Traceback" not in ended.err
    return ended.code, ended.out.splitlines()[0]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("idea", [*DRAWINGS, *WORDS])
def test_a_forged_report_is_refused(idea, folder, command):
    forge(folder, "report.html", {**DRAWINGS, **WORDS}[idea])
    assert code_and_first_line(folder, command)[0] == 1


@pytest.mark.one_in(3)
@pytest.mark.parametrize("idea", DRAWINGS)
def test_a_forged_drawing_of_another_altair_is_refused_or_said_to_be_not_compared(idea, folder, command):
    """Claimed in the report alone, which nothing else in the folder can refute."""
    forge(folder, "report.html", both(pattern(r"altair [0-9.]+", OTHER_ALTAIR), DRAWINGS[idea]))
    code, first = code_and_first_line(folder, command)
    if code != 1:
        assert code == 4 and first.endswith("Not compared: the drawings of report.html.")


@pytest.mark.parametrize("program", ["altair", "vl-convert-python"])
def test_any_shape_in_a_drawing_of_another_program_does_not_hold(program, folder, command):
    shape = inside_the_drawing('<path stroke="#000000" d="M0,0L400,400"/>')
    forge(folder, "report.html", both(pattern(rf"{program} [0-9][^,<]*", f"{program} 5.0.0"), shape))
    assert code_and_first_line(folder, command) == (
        4,
        "Nothing contradicts, but not everything was compared. Not compared: the drawings of report.html.",
    )


@pytest.mark.parametrize(
    ("idea", "version"),
    [*((idea, LATER) for idea in ACTIVE), *(("a script", version) for version in (None, EARLIER))],
)
def test_active_content_is_refused_whatever_is_claimed(idea, version, folder, command):
    forge(folder, "report.html", swapped("<main>", f"<main>{ACTIVE[idea]}"), version)
    code, _ = code_and_first_line(folder, command)
    assert code == 1


@pytest.mark.one_in(3)
@pytest.mark.parametrize("idea", WORDS)
def test_other_words_under_another_version_are_refused_or_said_to_be_not_compared(idea, folder, command):
    forge(folder, "report.html", WORDS[idea], LATER)
    code, first = code_and_first_line(folder, command)
    if code != 1:
        assert code == 4 and "report.html" in first
        assert not all(verdict.holds for verdict in stirred.verify(folder))
    assert idea != "a number" or code == 1


@pytest.mark.parametrize("version", [EARLIER, LATER])
@pytest.mark.parametrize(
    "words",
    [
        "epsilon is 0.001",
        "Epsilon = 1/1000",
        "an epsilon of 1e-3",
        "\u03b5 = 0.001",
        "epsilon of only\n0.001",
        "epsilon: 0",
    ],
)
def test_a_smaller_budget_in_the_readme_is_refused_whatever_is_claimed(words, version, folder, command):
    (folder / "report.html").unlink()
    forge(folder, "README.txt", lambda text: text + f"The guarantee: {words}.\n", version)
    assert code_and_first_line(folder, command)[0] == 1


def test_other_words_in_a_readme_of_another_version_are_said_to_be_not_compared(folder, command):
    forge(folder, "README.txt", lambda text: text + "Approved by everybody.\n", LATER)
    code, first = code_and_first_line(folder, command)
    assert code == 4 and "README.txt and the sentences of the other documents" in first


@pytest.mark.parametrize("what", ["\x1b[2K", "\u202e", "\x00", "\r"])
def test_a_readme_has_no_characters_that_nobody_sees_whatever_is_claimed(what, folder, command):
    forge(folder, "README.txt", lambda text: text + f"more{what}\n", LATER)
    assert code_and_first_line(folder, command)[0] == 1


def test_a_report_in_a_release_of_a_version_that_wrote_none_is_refused(folder, command):
    forge(folder, "report.html", swapped("In short", "In brief"), "0.5.0")
    ended = command("verify", folder)
    assert ended.code == 1 and "the version that wrote the release writes report.html" in ended.out


def test_a_report_that_was_not_forged_holds(folder):
    write_manifest(folder)
    assert stirred.verify(folder).state is State.HOLDS


def test_a_report_without_any_drawing_is_said_to_have_its_pictures_in_words(folder):
    """As it is written where nothing can be drawn; who takes all drawings away takes what they show away too."""
    forge(folder, "report.html", pattern(r'( viewBox="[^"]*")(>[^\n]*?</desc>).*?</svg>', r"\2</svg>", 0))
    verdicts = stirred.verify(folder)
    assert "report.html says what the other documents say; its pictures are in words only" in str(verdicts)
    assert verdicts.state is State.HOLDS


def test_one_drawing_of_several_taken_away_is_refused(tmp_path, command):
    folder = release_into(tmp_path / "release", "topdown")
    assert (folder / "report.html").read_text(encoding="utf-8").count("<svg ") > 1
    forge(folder, "report.html", pattern(r'( viewBox="[^"]*")(>[^\n]*?</desc>).*?</svg>', r"\2</svg>"))
    assert code_and_first_line(folder, command)[0] == 1
