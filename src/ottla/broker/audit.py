"""Who did what: one line in the logger `ottla.audit` for each request that changes more than records and positions.

A line has what was to be done to what, and what became of it; with JSON logs each in a field of its own. The values
of configs and credentials are left out, since some of them are secrets.
"""

import logging
from collections.abc import Callable, Iterator
from enum import IntEnum
from itertools import islice
from typing import Any

from ottla.broker.acl.authorizer import printable
from ottla.broker.request import Request
from ottla.cluster.acl import ACLOperation, ACLPermissionType, ACLResourcePatternType, ResourceType
from ottla.cluster.credential import ScramMechanism
from ottla.wire.api import api_name
from ottla.wire.errors import ErrorCode

MOST_ITEMS = 50
"""What one line tells of; a request may name thousands of topics."""

LONGEST_NAME = 249

log = logging.getLogger("ottla.audit")

Item = tuple[str, int]
"""What was to be changed, and the error code."""


def record_request(request: Request, response: Any) -> None:
    """Write down an administrative request that was answered, if anybody reads what is written."""
    if response is None or not log.isEnabledFor(logging.INFO):
        return
    found = _ITEMS[request.api_key](request.body, response)
    items = [f"{what}: {_code(code)}" for what, code in islice(found, MOST_ITEMS)]
    left = sum(1 for _ in found)
    if left:
        items.append(f"and {left} more")
    action = api_name(request.api_key)
    if getattr(request.body, "validate_only", False):
        action += " (only checked)"
    who = {
        "principal": request.caller.principal,
        "client_id": request.client_id,
        "address": request.caller.peer,
    }
    log.info(
        "%s by %s, client id %r, from %s: %s",
        *(action, printable(request.caller.principal), who["client_id"], who["address"], "; ".join(items)),
        extra={**who, "action": action, "outcome": items},
    )


def _code(code: int) -> str:
    try:
        return "ok" if not code else ErrorCode(code).name
    except ValueError:
        return str(code)


def _name(kind: type[IntEnum], number: int) -> str:
    try:
        return kind(number).name
    except ValueError:
        return f"{kind.__name__} {number}"


def _cut(text: str | None) -> str:
    # Quoted, so that a line break in a name does not look like a line of this log.
    return "any" if text is None else repr(text if len(text) <= LONGEST_NAME else text[:LONGEST_NAME] + "…")


def _create_topics(body: Any, response: Any) -> Iterator[Item]:
    for one in response.topics:
        yield f"topic {_cut(one.name)}", one.error_code


def _delete_topics(body: Any, response: Any) -> Iterator[Item]:
    for one in response.responses:
        yield f"topic {one.topic_id.hex() if one.name is None else _cut(one.name)}", one.error_code


def _delete_records(body: Any, response: Any) -> Iterator[Item]:
    for topic in response.topics:
        for one in topic.partitions:
            place = f"partition {one.partition_index} of topic {_cut(topic.name)}"
            yield f"{place} before offset {one.low_watermark}", one.error_code


def _create_partitions(body: Any, response: Any) -> Iterator[Item]:
    counts = {topic.name: topic.count for topic in body.topics}
    for one in response.results:
        yield f"topic {_cut(one.name)} to {counts.get(one.name)} partitions", one.error_code


def _alter_configs(body: Any, response: Any) -> Iterator[Item]:
    names = {(one.resource_type, one.resource_name): [each.name for each in one.configs] for one in body.resources}
    kinds = {2: "topic", 4: "broker", 8: "logger", 16: "client metrics", 32: "group"}
    for one in response.responses:
        changed = names.get((one.resource_type, one.resource_name), [])
        kind = kinds.get(one.resource_type, f"resource of type {one.resource_type}")
        yield f"{kind} {_cut(one.resource_name)} ({_cut(', '.join(changed))})", one.error_code


def _delete_groups(body: Any, response: Any) -> Iterator[Item]:
    for one in response.results:
        yield f"group {_cut(one.group_id)}", one.error_code


def _offset_delete(body: Any, response: Any) -> Iterator[Item]:
    group = f"offset of group {_cut(body.group_id)}"
    if response.error_code:
        yield group, response.error_code
    for topic in response.topics:
        for one in topic.partitions:
            yield f"{group} for partition {one.partition_index} of topic {_cut(topic.name)}", one.error_code


def _create_acls(body: Any, response: Any) -> Iterator[Item]:
    for asked, one in zip(body.creations, response.results, strict=False):
        yield _rule(asked, asked.resource_pattern_type), one.error_code


def _delete_acls(body: Any, response: Any) -> Iterator[Item]:
    for asked, one in zip(body.filters, response.filter_results, strict=False):
        if one.error_code or not one.matching_acls:
            kind = _name(ResourceType, asked.resource_type_filter)
            yield f"rules for {kind} {_cut(asked.resource_name_filter)}: none removed", one.error_code
        for each in one.matching_acls:
            yield _rule(each, each.pattern_type), each.error_code


def _rule(rule: Any, pattern_type: int) -> str:
    permission, operation = _name(ACLPermissionType, rule.permission_type), _name(ACLOperation, rule.operation)
    kind, pattern = _name(ResourceType, rule.resource_type), _name(ACLResourcePatternType, pattern_type)
    who = f"{_cut(rule.principal)} from {_cut(rule.host)}"
    return f"rule: {permission} {who} to {operation} {kind} {_cut(rule.resource_name)} ({pattern})"


def _alter_client_quotas(body: Any, response: Any) -> Iterator[Item]:
    for asked, one in zip(body.entries, response.entries, strict=False):
        entity = ", ".join(f"{each.entity_type} {_cut(each.entity_name)}" for each in asked.entity[:2])
        changes = ", ".join(
            f"{_cut(each.key)} {'removed' if each.remove else each.value}" for each in asked.ops[:MOST_ITEMS]
        )
        yield f"quota of {entity} ({changes})", one.error_code


def _alter_credentials(body: Any, response: Any) -> Iterator[Item]:
    changes: dict[str, list[str]] = {}
    for verb, asked in (("removed", body.deletions), ("set", body.upsertions)):
        for each in asked:
            changes.setdefault(each.name, []).append(f"{_name(ScramMechanism, each.mechanism)} {verb}")
    for one in response.results:
        yield f"credentials of user {_cut(one.user)} ({', '.join(changes.get(one.user, []))})", one.error_code


_ITEMS: dict[int, Callable[[Any, Any], Iterator[Item]]] = {
    19: _create_topics,
    20: _delete_topics,
    21: _delete_records,
    30: _create_acls,
    31: _delete_acls,
    33: _alter_configs,
    37: _create_partitions,
    42: _delete_groups,
    44: _alter_configs,
    47: _offset_delete,
    49: _alter_client_quotas,
    51: _alter_credentials,
}

AUDITED = frozenset(_ITEMS)
"""The API keys of the requests that are written down."""
