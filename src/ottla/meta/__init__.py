"""Where the picture of the cluster is kept: one contract, and the homes that honour it."""

from ottla.meta.catalog import Catalog
from ottla.meta.store import Check, Conflict, Create, Delete, Entry, MetaStore, SessionLostError, Set, StoreError

__all__ = [
    "Catalog",
    "Check",
    "Conflict",
    "Create",
    "Delete",
    "Entry",
    "MetaStore",
    "SessionLostError",
    "Set",
    "StoreError",
]
