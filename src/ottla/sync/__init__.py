"""The clients without asyncio, for scripts and notebooks: the same names, options and methods, without `await`.

>>> with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
...     producer.send_and_wait("payments", b"three euros").offset
0

One event loop on a thread of its own serves all of them. It starts with the first client; clients that are still open
at the end of the program are stopped then. In a process that was forked start new ones.
"""

from typing import TYPE_CHECKING

from ottla.lazy import lookup

if TYPE_CHECKING:
    from ottla.sync.admin import Admin as Admin
    from ottla.sync.arrow import TableDelivery as TableDelivery
    from ottla.sync.consumer import Consumer as Consumer
    from ottla.sync.delivery import Delivery as Delivery
    from ottla.sync.producer import Producer as Producer
    from ottla.sync.table import read_table as read_table

_HOMES = {
    "Admin": "ottla.sync.admin",
    "Consumer": "ottla.sync.consumer",
    "Delivery": "ottla.sync.delivery",
    "Producer": "ottla.sync.producer",
    "TableDelivery": "ottla.sync.arrow",
    "read_table": "ottla.sync.table",
}

__all__ = ["Admin", "Consumer", "Delivery", "Producer", "TableDelivery", "read_table"]

__getattr__ = lookup(globals(), _HOMES)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
