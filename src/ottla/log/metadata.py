"""`partition.metadata`, which says to which topic, by id, a partition's folder belongs."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

from ottla.ports import Disk

METADATA_FILE: Final = "partition.metadata"
DELETE_SUFFIX: Final = "-delete"
"""What the folder of a deleted partition ends in until it is gone."""


def write_topic_id(disk: Disk, folder: str, topic_id: bytes) -> None:
    """Write the file. It is not synced: the cluster's metadata knows the id as well."""
    text = urlsafe_b64encode(topic_id).decode().rstrip("=")
    name = f"{folder}/{METADATA_FILE}"
    disk.remove(name)
    disk.open(name, create=True).append(f"version: 0\ntopic_id: {text}".encode())


def read_topic_id(disk: Disk, folder: str) -> bytes | None:
    """The topic's id; None if the file is missing or says nothing of the kind."""
    try:
        lines = disk.read(f"{folder}/{METADATA_FILE}").decode().splitlines()
        version, topic_id = (line.partition(": ")[2] for line in lines)
        found = urlsafe_b64decode(topic_id + "==")
    except (FileNotFoundError, ValueError):
        return None
    return found if version == "0" and len(found) == 16 else None


def deleted_name(folder: str, topic_id: bytes) -> str:
    """What a partition's folder is called from its deletion on until it is gone.

    >>> deleted_name("orders-0", bytes(16))
    'orders-0.00000000000000000000000000000000-delete'
    """
    # File names have 255 bytes, and topic names up to 249.
    topic, _, partition = folder.rpartition("-")
    return f"{topic[:200]}-{partition}.{topic_id.hex()}{DELETE_SUFFIX}"
