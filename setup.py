"""Everything is declared in pyproject.toml; this only keeps an earlier build out of a new wheel."""

import shutil

from setuptools import setup
from setuptools.command.build import build


class CleanBuild(build):
    """Build into an empty folder: setuptools would pack whatever an earlier build left in ``build/lib``."""

    def run(self) -> None:
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


setup(cmdclass={"build": CleanBuild})
