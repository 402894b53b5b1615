"""The clients without asyncio, for scripts and notebooks: the same names, options and methods, without `await`.

>>> with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
...     producer.send_and_wait("payments", b"three euros").offset
0

One event loop on a thread of its own serves all of them. It starts with the first client; clients that are still open
at the end of the program are stopped then. In a process that was forked start new ones.
"""

from ottla.sync.admin import Admin
from ottla.sync.arrow import TableDelivery
from ottla.sync.consumer import Consumer
from ottla.sync.delivery import Delivery
from ottla.sync.producer import Producer
from ottla.sync.table import read_table

__all__ = ["Admin", "Consumer", "Delivery", "Producer", "TableDelivery", "read_table"]
