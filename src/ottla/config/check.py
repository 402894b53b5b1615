"""What a config's value must satisfy. A check takes the value and says what is wrong with it, or None."""

import re
from collections.abc import Callable

from ottla.config.parse import Value

Check = Callable[[Value], str | None]


def at_least(least: float) -> Check:
    """Not smaller than this.

    >>> at_least(1)(0)
    'must be at least 1'
    """

    def check(value: Value) -> str | None:
        assert isinstance(value, int | float)
        return None if value >= least else f"must be at least {least}"

    return check


def between(least: float, most: float) -> Check:
    """Within these bounds, both included.

    >>> between(0, 1)(1.5), between(0, 1)(0.5)
    ('must lie between 0 and 1', None)
    """

    def check(value: Value) -> str | None:
        assert isinstance(value, int | float)
        return None if least <= value <= most else f"must lie between {least} and {most}"

    return check


def one_of(*allowed: Value) -> Check:
    """One of these values.

    >>> one_of("CreateTime", "LogAppendTime")("createtime")
    'must be one of CreateTime, LogAppendTime'
    >>> one_of("", "ottla")("mine")
    'must be ottla, or empty'
    """
    named = [str(one) for one in allowed if one != ""]
    complaint = f"must be one of {', '.join(named)}" if len(named) > 1 else f"must be {named[0]}"
    if len(named) < len(allowed):
        complaint += ", or empty"

    def check(value: Value) -> str | None:
        return None if value in allowed else complaint

    return check


def only(reason: str, allowed: Value) -> Check:
    """This value and no other, because Ottla has nothing that another would switch on.

    >>> only("there is no tiered storage", False)(True)
    'there is no tiered storage; leave it at false'
    """

    def check(value: Value) -> str | None:
        return None if value == allowed else f"{reason}; leave it at {str(allowed).lower()}"

    return check


def each_of(*allowed: str) -> Check:
    """A list of these, each at most once.

    >>> each_of("compact", "delete")(("compact", "shrink"))
    "'shrink' is not among compact, delete"
    >>> each_of("compact", "delete")(("compact", "compact"))
    "'compact' is there twice"
    """

    def check(value: Value) -> str | None:
        assert isinstance(value, tuple)
        for position, part in enumerate(value):
            if part not in allowed:
                return f"{part!r} is not among {', '.join(allowed)}"
            if part in value[:position]:
                return f"{part!r} is there twice"
        return None

    return check


def each_of_or_place(*allowed: str) -> Check:
    """A list of these, or of places in Python modules, each at most once.

    >>> each_of_or_place("uniform", "range")(("uniform", "mine.assignors:Fair"))
    >>> each_of_or_place("uniform", "range")(("fair",))
    "'fair' is not among uniform, range, nor a place like package.module:attribute"
    """

    def check(value: Value) -> str | None:
        assert isinstance(value, tuple)
        for position, part in enumerate(value):
            if part not in allowed and not re.fullmatch(r"[\w.]+:\w+", part):
                return f"{part!r} is not among {', '.join(allowed)}, nor a place like package.module:attribute"
            if part in value[:position]:
                return f"{part!r} is there twice"
        return None if value else "name at least one"

    return check


def single(reason: str) -> Check:
    """A list of one, because Ottla has but one.

    >>> single("there is one data folder")(("a", "b"))
    'there is one data folder; name 1, not 2'
    """

    def check(value: Value) -> str | None:
        assert isinstance(value, tuple)
        return None if len(value) == 1 else f"{reason}; name 1, not {len(value)}"

    return check


def principals_of(text: str) -> tuple[str, ...]:
    """Principals with semicolons between them, since names in certificates have commas.

    >>> principals_of("User:CN=root,O=Ottla; User:admin;")
    ('User:CN=root,O=Ottla', 'User:admin')
    """
    return tuple(stripped for part in text.split(";") if (stripped := part.strip()))


def each_principal(value: Value) -> str | None:
    """A list of principals with semicolons between them, each with its kind.

    >>> each_principal("User:admin;root")
    "'root' is no principal; write User:root"
    >>> each_principal("User:admin,User:root")
    "'User:admin,User:root' would be one principal; write semicolons between them, as in User:admin;User:root"
    """
    for principal in principals_of(str(value)):
        kind, _, name = principal.partition(":")
        if not (kind and name):
            return f"{principal!r} is no principal; write User:{principal.strip(':')}"
        # No certificate has such a name, and a broker that took it would have no super user.
        if re.search(r",\s*User:", principal):
            several = re.sub(r",\s*User:", ";User:", principal)
            return f"{principal!r} would be one principal; write semicolons between them, as in {several}"
    return None
