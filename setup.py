"""Builds the compiled kernels where a C compiler is at hand; everything else is in pyproject.toml."""

import os

from setuptools import Extension, setup


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
    for extension in built:
        # Without a compiler the install goes on, and the Python twins do the work.
        extension.optional = True
    return built


setup(ext_modules=kernels(), options={"build_ext": {"parallel": os.cpu_count()}})
