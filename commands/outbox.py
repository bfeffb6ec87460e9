"""`tidings outbox`: what the admin API offers, for a terminal."""

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from process import Refused

TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Outbox:
    """The admin API at one address, for the holder of one token."""

    api_url: str
    token: str

    def page(self, filters: dict[str, Any]) -> dict[str, Any]:
        """One page of events. Raises Refused."""
        return self._call("GET", "", params={name: value for name, value in filters.items() if value is not None})

    def show(self, event_id: str) -> dict[str, Any]:
        """One event with its timeline. Raises Refused."""
        return self._call("GET", f"/{quote(event_id, safe='')}")

    def retry(self, event_id: str, order: dict[str, Any]) -> dict[str, Any]:
        """Sends again. Without a kind or an observed status, they are read first. Raises Refused."""
        if order.get("kind") is None or order.get("expected_status") is None:
            seen = self.show(event_id)
            if seen["status"] not in ("failed", "uncertain"):
                raise Refused(f"the event is {seen['status']}; only what failed or is uncertain can be sent again")
            order = {"kind": seen["kind"], "expected_status": seen["status"]} | _given(order)
        return self._call("POST", f"/{quote(event_id, safe='')}/retry", json=_given(order))

    def resolve(self, event_id: str, order: dict[str, Any]) -> dict[str, Any]:
        """Ends a doubt. Raises Refused."""
        order = {"expected_status": "uncertain"} | _given(order)
        return self._call("POST", f"/{quote(event_id, safe='')}/resolve", json=order)

    def _call(self, method: str, path: str, **how: Any) -> dict[str, Any]:
        url = f"{self.api_url}/admin/api/notification-outbox{path}"
        headers = {"Authorization": f"Bearer {self.token}"}
        try:
            answer = httpx.request(method, url, headers=headers, timeout=TIMEOUT_S, trust_env=False, **how)
            body: dict[str, Any] = answer.json()
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise Refused(f"the API at {self.api_url} cannot be reached ({type(error).__name__})") from None
        except ValueError:
            raise Refused(f"{self.api_url} answered something that is not the API of Tidings") from None
        if answer.is_error:
            raise Refused(_refusal(body))
        return body


def _given(order: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in order.items() if value is not None}


def _refusal(body: dict[str, Any]) -> str:
    error = body.get("error", {})
    details = error.get("details")
    return f"{error.get('code')}: {error.get('message')}{f' {json.dumps(details)}' if details else ''}"


def table(items: list[dict[str, Any]]) -> list[str]:
    """Events as lines: one each, and one for every delivery that is not simply completed."""
    lines = []
    for item in items:
        lines.append(f"{item['created_at']}  {item['status']:<10}  {item['kind']:<17}  {item['event_id']}")
        lines += [_delivery_line(part) for part in item["deliveries"] if part["status"] != "completed"]
    return lines


def story(event: dict[str, Any]) -> list[str]:
    """One event with its timeline as lines."""
    lines = table([event])
    for entry in event["timeline"]:
        words = [entry.get(name) for name in ("channel", "type", "outcome", "decision", "code", "operator", "reason")]
        move = f"{entry['from']} -> {entry['to']}" if "from" in entry else ""
        lines.append(f"  {entry['at']}  {' '.join(word for word in words if word)}  {move}".rstrip())
    if event["workflow_url"]:
        lines.append(f"  {event['workflow_url']}")
    return lines


def _delivery_line(part: dict[str, Any]) -> str:
    again = f", again at {part['next_attempt_at']}" if part["next_attempt_at"] else ""
    code = f" ({part['last_error_code']})" if part["last_error_code"] else ""
    return f"    {part['channel']}: {part['status']}{code}, attempt {part['cycle_attempts']}{again}"
