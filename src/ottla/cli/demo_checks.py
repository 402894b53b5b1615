"""What came of the pipeline of `ottla demo`, read back without Spark and compared with what went in."""

import json
from pathlib import Path
from typing import NamedTuple

from rich.table import Table

from ottla.cli.demo_orders import MINUTE_MS, START_MS, Orders, Sum, Sums, total
from ottla.cli.demo_spark import BY_MINUTE, REJECTED, TABLE
from ottla.cli.output import make_table
from ottla.sync import read_table


class Found(NamedTuple):
    """What is in one place, and whether it is what must be there."""

    orders: int
    cents: int | None
    windows: int | None
    """Pairs of a minute and a country. Each was compared."""
    same: bool


class Checks(NamedTuple):
    """All places side by side."""

    produced: Found
    table: Found
    sums: Found
    rejected: Found

    @property
    def agree(self) -> bool:
        """Whether all is as it must be."""
        return all(one.same for one in self)


def check(folder: Path, address: str, orders: Orders) -> Checks:
    """Read everything back."""
    expected = orders.sums()
    rejected = read_table(REJECTED, bootstrap_servers=address, columns=["value"]).num_rows if orders.broken else 0
    return Checks(
        produced=_found(expected, same=True),
        table=check_table(folder / TABLE, expected),
        sums=check_sums(address, expected),
        rejected=Found(rejected, None, None, same=rejected == orders.broken),
    )


def check_table(folder: Path, expected: Sums) -> Found:
    """Sum up the rows of the Parquet table; each order must be there once."""
    import pyarrow.compute as pc
    from pyarrow import dataset

    rows = dataset.dataset(folder, format="parquet", partitioning="hive").to_table(
        columns=["order", "country", "cents", "at_ms"]
    )
    minute = pc.divide(pc.subtract(rows["at_ms"], START_MS), MINUTE_MS)
    grouped = rows.append_column("minute", minute).group_by(["minute", "country"])
    sums = {
        (row["minute"], row["country"]): Sum(row["order_count"], row["cents_sum"])
        for row in grouped.aggregate([("order", "count"), ("cents", "sum")]).to_pylist()
    }
    once = pc.count_distinct(rows["order"]).as_py() == rows.num_rows
    return _found(sums, same=once and sums == expected)


def check_sums(address: str, expected: Sums) -> Found:
    """Look at the last record of each key: later micro-batches update what earlier ones have written."""
    latest = {}
    for row in read_table(BY_MINUTE, bootstrap_servers=address, columns=["key", "value"]).to_pylist():
        latest[row["key"]] = json.loads(row["value"])
    sums = {
        ((one["minute_ms"] - START_MS) // MINUTE_MS, one["country"]): Sum(one["orders"], one["cents"])
        for one in latest.values()
    }
    return _found(sums, same=sums == expected)


def _found(sums: Sums, *, same: bool) -> Found:
    return Found(*total(sums), windows=len(sums), same=same)


def comparison(checks: Checks) -> Table:
    """All places as a table."""
    names = ("produced", "table in Parquet", f"topic {BY_MINUTE}", f"topic {REJECTED}")
    rows = []
    for name, found in zip(names, checks, strict=True):
        amount = "" if found.cents is None else f"{found.cents / 100:,.2f}"
        windows = "" if found.windows is None else f"{found.windows:,}"
        same = "" if found is checks.produced else "yes" if found.same else "[bold red]NO[/]"
        rows.append([name, f"{found.orders:,}", amount, windows, same])
    return make_table(["", "orders #", "amount #", "windows #", "same"], rows)
