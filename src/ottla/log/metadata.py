"""`partition.metadata`, which says to which topic, by id, a partition's folder belongs."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

from ottla.ports import Disk

METADATA_FILE: Final = "partition.metadata"


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
