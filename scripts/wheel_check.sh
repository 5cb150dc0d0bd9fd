#!/usr/bin/env bash
# Build the wheel, install it without constraints into an empty environment of every supported Python that is on this
# machine, and try the commands there. Everything happens in a temporary folder; nothing of the repository is imported.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

interpreters() {  # one line for each minor version that is found, the first of its kind
    local found python version
    for version in 3.11 3.12 3.13; do
        for python in "$(command -v "python$version" || true)" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/python; do
            found=$("$python" -c 'import ensurepip, sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
            if [ "$found" = "$version" ]; then
                echo "$version $python"
                break
            fi
        done
    done
}

build() {  # a wheel of a copy of the tracked files, so that what lies about in the repository has no say
    (cd "$work/source" && "$work/build/bin/pip" wheel --quiet --no-deps --wheel-dir "$work/$1" .)
}

interpreters >"$work/interpreters"
read -r version python <"$work/interpreters" || { echo "no Python 3.11, 3.12 or 3.13 was found" >&2; exit 1; }
"$python" -m venv "$work/build"
git ls-files -z --cached --others --exclude-standard | tar --null --files-from=- -cf "$work/source.tar"
mkdir "$work/source" && tar -xf "$work/source.tar" -C "$work/source"

echo "A file that was removed since an earlier build is not in the wheel:"
echo '"""Removed before the second build."""' >"$work/source/src/stirred/removed.py"
build first
rm "$work/source/src/stirred/removed.py"
build second
"$work/build/bin/python" - "$work"/first/*.whl "$work"/second/*.whl "$work/source/docs" <<'PYTHON'
import sys
from pathlib import Path
from zipfile import ZipFile

first, second = ({*ZipFile(path).namelist()} for path in sys.argv[1:3])
assert first - second == {"stirred/removed.py"}, first ^ second
pages = {f"stirred/docs/{path.name}" for path in Path(sys.argv[3]).iterdir()}
assert pages <= second, pages - second
outside = {name for name in second if not name.startswith(("stirred/", "stirred-"))}
assert not outside, outside
print(f"  holds; {len(second)} files, {len(pages)} of them documentation")
PYTHON

says() {  # run a command of the package, which must end well and print these words
    local words=$1
    shift
    "$@" >said.txt
    grep -q -- "$words" said.txt || { echo "'$words' is not in what this printed: ${*##*/}" >&2; return 1; }
}

try_out() {  # with the installed commands, in an empty folder
    set -euo pipefail
    trap 'echo "failed in line $LINENO: $BASH_COMMAND" >&2' ERR
    local stirred=$1/stirred
    "$stirred" --version
    says das-2020-overall "$stirred" deployments
    says "^topdown " "$stirred" docs
    says "^# Plans" "$stirred" docs plans
    says "rho" "$stirred" explain das-2020-overall
    says "epsilon = 12.48" "$stirred" demo swap
    {
        echo "size,county,tenure"
        for row in $(seq 300); do echo "$((row % 3 + 1)),$((row * row % 5)),$((row % 7 % 2))"; done
    } >households.csv
    printf '%s\n' 'stirred = 1' 'mechanism = "swap"' 'unit = "household"' 'rate = 0.1' 'chosen_from = "public"' \
        'match = ["size"]' 'swap = ["county"]' 'hold = ["tenure"]' '[input]' 'path = "households.csv"' >plan.toml
    says CONFIDENTIAL "$stirred" check plan.toml
    "$stirred" release plan.toml --out release >/dev/null
    says "recounted and equal" "$stirred" verify release
    [ "$(wc -l <release/microdata.csv)" -eq 301 ]
}

while read -r version python; do
    echo "Python $version ($("$python" --version)):"
    "$python" -m venv "$work/$version"
    "$work/$version/bin/pip" install --quiet --only-binary :all: "$work"/second/*.whl
    mkdir "$work/tried-$version"
    (export PYTHONPATH='' && cd "$work/tried-$version" && try_out "$work/$version/bin") | sed 's/^/  stirred /'
    echo "  holds"
done <"$work/interpreters"
