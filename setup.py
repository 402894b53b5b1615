"""Builds what is compiled where a C compiler is at hand; everything else is in pyproject.toml.

Cython makes the kernels, which have Python twins. mypyc makes the modules of compiled.txt, which are their own twins.
"""

import os
import sys
from pathlib import Path
from sysconfig import get_config_var

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SOURCES = Path("src")
GROUP = "ottla"
SHARED = f"{GROUP}__mypyc"
"""The library with the code of all modules that mypyc compiles; beside each lies a stub that leads there."""

BUILDING = {"bdist_wheel", "build", "build_ext", "develop", "editable_wheel", "install"}
"""Commands that build. Others, such as those that only ask for a name, need not wait for mypyc."""


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
            ("ottla.net._carrier", "src/ottla/net/_carrier.pyx"),
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
    paths = [str(SOURCES / line) for line in lines if line and not line.startswith("#")]
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
    """Builds what can be built: without a compiler the install goes on, and Python does the work.

    What mypyc makes is there as a whole, and of these sources, or not at all: a part of it, or what an earlier build
    has left, would take the place of sources that say something else.
    """

    def run(self) -> None:
        self._clear()
        super().run()
        wanted = [each.name for each in self.extensions if not _is_kernel(each.name)]
        if not all(Path(self.get_ext_fullpath(name)).exists() for name in wanted):
            print("ottla: not all was compiled, so requests will be handled by Python as it is")
            self._clear()

    def _clear(self) -> None:
        suffix = get_config_var("EXT_SUFFIX")
        for folder in [Path(self.build_lib), *([SOURCES] if self.inplace else [])]:
            for found in [*folder.glob(SHARED + suffix), *folder.glob(f"ottla/**/*{suffix}")]:
                if not _is_kernel(found.name.removesuffix(suffix)):
                    found.unlink()


def _is_kernel(name: str) -> bool:
    return name.rpartition(".")[2].startswith("_")


extensions = [*kernels(), *(modules() if BUILDING.intersection(sys.argv) else [])]
for extension in extensions:
    extension.optional = True
setup(ext_modules=extensions, cmdclass={"build_ext": Build}, options={"build_ext": {"parallel": os.cpu_count()}})
