"""A small writer of Python source: lines, indentation, fresh names, and the objects that the lines refer to."""

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any


class Source:
    """Python source that grows line by line and is then compiled."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}
        self._depth = 0
        self._serial = 0

    def line(self, text: str) -> None:
        """Add a line at the present indentation."""
        self.lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        """Add a line that ends in a colon, and indent what follows."""
        self.line(opening)
        self._depth += 1
        yield
        self._depth -= 1

    def fresh(self, stem: str) -> str:
        """A local name that nobody else has."""
        self._serial += 1
        return f"{stem}{self._serial}"

    def bind(self, stem: str, value: Any) -> str:
        """A name under which the source can refer to an object; the same object gets the same name."""
        for name, known in self.names.items():
            if known is value:
                return name
        name = self.fresh(f"{stem}_")
        self.names[name] = value
        return name

    def packer(self, codes: str) -> str:
        """A name for `Struct.pack` of these fields."""
        return self._method("pack", codes, struct.Struct(">" + codes).pack)

    def unpacker(self, codes: str) -> str:
        """A name for `Struct.unpack_from` of these fields."""
        return self._method("unpack", codes, struct.Struct(">" + codes).unpack_from)

    def iter_unpacker(self, codes: str) -> str:
        """A name for `Struct.iter_unpack` of these fields."""
        return self._method("each", codes, struct.Struct(">" + codes).iter_unpack)

    def _method(self, stem: str, codes: str, method: Callable[..., Any]) -> str:
        name = f"{stem}_{codes}".replace("?", "bool")
        self.names[name] = method
        return name

    def compile(self, function: str, title: str) -> Callable[..., Any]:
        """Run the source and return the function of that name."""
        exec(compile("\n".join(self.lines), f"<{title}>", "exec"), self.names)  # noqa: S102
        compiled: Callable[..., Any] = self.names[function]
        return compiled


SMALL = 17
"""Arrays of scalars shorter than this use a ready struct; longer ones look their format up."""


@cache
def small_unpackers(code: str) -> tuple[Callable[..., Any], ...]:
    """`unpack_from` for arrays of 0, 1, 2 ... elements."""
    return tuple(struct.Struct(f">{code * count}").unpack_from for count in range(SMALL))


@cache
def small_packers(code: str) -> tuple[Callable[..., Any], ...]:
    """`pack` for arrays of 0, 1, 2 ... elements."""
    return tuple(struct.Struct(f">{code * count}").pack for count in range(SMALL))
