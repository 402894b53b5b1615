"""Builds what is compiled where a C compiler is at hand; everything else is in pyproject.toml.

Cython makes the kernels, which have Python twins. mypyc makes the modules of compiled.txt, which are their own twins.
"""

import os
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SOURCES = Path("src")
GROUP = "ottla"
SHARED = f"{GROUP}__mypyc"
"""The library with the code of all modules that mypyc compiles; beside each lies a stub that leads there."""


def kernels() -> list[Extension]:
    try:
        from Cython.Build import cythonize
    except ImportError:
        print("ottla: no Cython, so the kernels' Python twins will be used")
        return []
    extensions = [
        Extension(name, [source], extra_compile_args=["-O3"])
        for name, source in (
            ("ottla.ports._native", "src/ottla/ports/_native.pyx"),
            ("ottla.wire._codec", "src/ottla/wire/_codec.pyx"),
            ("ottla.metrics._counting", "src/ottla/metrics/_counting.pyx"),
            ("ottla.record._kernels", "src/ottla/record/_kernels.pyx"),
            ("ottla.client.producer._taking", "src/ottla/client/producer/_taking.pyx"),
        )
    ]
    built: list[Extension] = cythonize(extensions, language_level=3, build_dir="build")
    return built


def modules() -> list[Extension]:
    try:
        from mypyc.build import mypycify
    except ImportError:
        print("ottla: no mypyc, so requests will be handled by Python as it is")
        return []
    lines = (SOURCES / "ottla/compiled.txt").read_text().splitlines()
    paths = [str(SOURCES / line) for line in lines if not line.startswith("#")]
    os.environ["MYPYPATH"] = str(SOURCES)
    # Types were checked before; here only those are wanted that there are, whatever else is installed.
    options = ["--config-file=", "--explicit-package-bases", "--ignore-missing-imports", "--follow-imports=silent"]
    try:
        built: list[Extension] = mypycify([*options, *paths], group_name=GROUP, opt_level="3", debug_level="0")
    except SystemExit:
        print("ottla: mypyc cannot compile these modules, so requests will be handled by Python as it is")
        return []
    return built


class Build(build_ext):
    def run(self) -> None:
        """Build what can be built: without a compiler the install goes on, and Python does the work."""
        super().run()
        stubs: list[Any] = [each for each in self.extensions if each.name not in NAMES_OF_KERNELS]
        if not stubs:
            return
        shared = Path(self.get_ext_fullpath(SHARED))
        if shared.exists():
            # As new as the sources, also where only a comment of theirs has changed: the tests ask for that.
            shared.touch()
        else:
            # Stubs that lead nowhere would be in the way of the sources.
            for stub in stubs:
                Path(self.get_ext_fullpath(stub.name)).unlink(missing_ok=True)


made_by_cython = kernels()
NAMES_OF_KERNELS = {each.name for each in made_by_cython}
extensions = [*made_by_cython, *modules()]
for extension in extensions:
    extension.optional = True
setup(ext_modules=extensions, cmdclass={"build_ext": Build}, options={"build_ext": {"parallel": os.cpu_count()}})
