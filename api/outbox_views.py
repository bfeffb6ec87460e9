"""Events as operators see them: snake_case, times as RFC 3339, summaries only."""

from operator import itemgetter
from typing import Any
from urllib.parse import quote

from domain.lifecycle import Status
from store.clock import rfc3339
from store.outbox import AttemptView, DecisionView, DeliveryView, EventView, History


def item(event: EventView, workflows_url: str | None) -> dict[str, Any]:
    """An event with its deliveries, as the list shows it."""
    parts = event.deliveries
    return {
        "event_id": event.event_id,
        "source": event.source,
        "kind": event.kind,
        "status": event.status,
        "created_at": rfc3339(event.created_at),
        "updated_at": rfc3339(max([event.updated_at, *(part.updated_at for part in parts)])),
        "completed_at": rfc3339(event.completed_at),
        "cycle_attempts": max((part.cycle_attempts for part in parts), default=0),
        "total_attempts": sum(part.total_attempts for part in parts),
        "last_error_code": next((part.last_error_code for part in parts if part.last_error_code), None),
        "workflow_url": f"{workflows_url}/{quote(event.event_id, safe='')}" if workflows_url else None,
        "deliveries": [_delivery(part) for part in parts],
    }


def detail(history: History, workflows_url: str | None) -> dict[str, Any]:
    """An event with its timeline."""
    return {**item(history.event, workflows_url), "timeline": _timeline(history)}


def _delivery(part: DeliveryView) -> dict[str, Any]:
    return {
        "delivery_id": part.delivery_id,
        "channel": part.channel,
        "provider": part.provider,
        "status": part.status,
        "generation": part.generation,
        "cycle_attempts": part.cycle_attempts,
        "total_attempts": part.total_attempts,
        "next_attempt_at": rfc3339(part.next_attempt_at),
        "last_error_code": part.last_error_code,
        "provider_message_id": part.provider_message_id,
        "payload_hash": part.payload_hash,
        "created_at": rfc3339(part.created_at),
        "delivered_at": rfc3339(part.delivered_at),
    }


def _timeline(history: History) -> list[dict[str, Any]]:
    """Everything that happened, in order; entries of the same moment keep the order of their kinds."""
    channels = {part.delivery_id: part.channel for part in history.event.deliveries}
    entries: list[tuple[int, dict[str, Any]]] = [(history.event.created_at, {"type": "accepted"})]
    for attempt in history.attempts:
        entries += _attempt_entries(attempt)
    entries += [(decision.decided_at, _decision_entry(decision)) for decision in history.decisions]
    entries += [_skip_entry(part) for part in history.event.deliveries if part.status is Status.SKIPPED]
    entries.sort(key=itemgetter(0))
    return [
        {"at": rfc3339(at), "channel": channels.get(entry.get("delivery_id", "")), **entry} for at, entry in entries
    ]


def _attempt_entries(attempt: AttemptView) -> list[tuple[int, dict[str, Any]]]:
    about = {"delivery_id": attempt.delivery_id, "attempt": attempt.number, "generation": attempt.generation}
    started = {"type": "attempt_started", **about, "provider": attempt.provider, "from": "pending", "to": "processing"}
    entries = [(attempt.started_at, started)]
    if attempt.ended_at is not None:
        ended = {
            "type": "attempt_ended",
            **about,
            "outcome": attempt.outcome,
            "stage": attempt.stage,
            "code": attempt.code,
            "http_status": attempt.http_status,
            "provider_message_id": attempt.provider_message_id,
            "from": "processing",
            "to": attempt.status_after,
        }
        entries.append((attempt.ended_at, ended))
    if attempt.late_at is not None:
        late = {"type": "late_result", **about, "outcome": attempt.late_outcome, "code": attempt.late_code}
        entries.append((attempt.late_at, late))
    return entries


def _decision_entry(decision: DecisionView) -> dict[str, Any]:
    return {
        "type": "decision",
        "delivery_id": decision.delivery_id,
        "decision": decision.verdict,
        "operator": decision.operator,
        "reason": decision.reason,
        "door": decision.door,
        "from": decision.observed_status,
        "to": decision.new_status,
    }


def _skip_entry(part: DeliveryView) -> tuple[int, dict[str, Any]]:
    entry = {"type": "skipped", "delivery_id": part.delivery_id, "code": part.last_error_code}
    return part.updated_at, {**entry, "from": "pending", "to": "skipped"}
