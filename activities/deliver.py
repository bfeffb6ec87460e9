"""The `deliver` activity: the send protocol under Temporal's retries, heartbeats and shutdown."""

import random
from datetime import timedelta

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.sender import Order, Sender
from activities.siblings import Siblings
from activities.ticker import ticking
from domain.errors import TidingsError
from domain.lifecycle import Status
from store.deliveries import Verdict
from workflows import calls
from workflows.calls import DeliverInput, DeliverResult

HEARTBEAT_PAUSE_S = calls.HEARTBEAT_TIMEOUT.total_seconds() / 3


class Deliver:
    """Sends one delivery; a transient outcome is Temporal's to try again, after the delay that the store decided."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._siblings = Siblings()

    @activity.defn(name=calls.DELIVER)
    async def run(self, order: DeliverInput) -> DeliverResult:
        """Answers once the delivery has ended or is uncertain. Its errors hold codes only: histories keep them."""
        with self._siblings.of(order.event_id) as siblings:
            with ticking(HEARTBEAT_PAUSE_S, activity.heartbeat):
                verdict = await self._verdict(order)
            if verdict is None:
                return DeliverResult("superseded")
            if verdict.status in (Status.PENDING, Status.PROCESSING):
                raise _come_back(verdict)
            await siblings.finish_together()
            return DeliverResult(verdict.status.value, verdict.code)

    async def _verdict(self, order: DeliverInput) -> Verdict | None:
        try:
            return await self._sender.deliver(Order(order.event_id, order.delivery_id, order.generation))
        except TidingsError as error:
            raise ApplicationError(error.message, type=error.code) from None
        except Exception as fault:
            # Its text could hold an address; the type is enough to find it in our own log.
            raise ApplicationError("fault while delivering", type=type(fault).__name__) from None


def _come_back(verdict: Verdict) -> ApplicationError:
    busy = verdict.status is Status.PROCESSING
    delay_s = verdict.delay_s + (random.uniform(0.05, 0.25) if busy else 0.0)
    return ApplicationError(
        f"{verdict.code or 'another worker is sending'}; again in {delay_s:.1f} s",
        type="Busy" if busy else "Transient",
        next_retry_delay=timedelta(seconds=max(delay_s, 0.001)),
        category=ApplicationErrorCategory.BENIGN,
    )
