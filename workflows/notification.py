"""One event from start to end: every delivery on its own, doubt parked until an operator decides."""

import asyncio
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

with workflow.unsafe.imports_passed_through():
    from workflows import calls
    from workflows.calls import DecideInput, DecideResult, DeliverInput, DeliverResult, DeliveryRef, EventInput


@workflow.defn(name=calls.WORKFLOW)
class Notification:
    """Sees an event's deliveries through. The store decides what happens; this only remembers what is open."""

    @workflow.init
    def __init__(self, event: EventInput) -> None:
        self._event = event
        self._generations: dict[str, int] = {}
        self._flights: list[asyncio.Task[None]] = []
        self._parked: dict[str, tuple[DeliveryRef, str]] = {}
        self._ended: dict[str, str] = {}
        self._refusals: list[str] = []

    @workflow.run
    async def run(self, event: EventInput) -> dict[str, str]:
        """Ends when every delivery has ended; fails, so that the list of workflows shows it, when one has failed."""
        # No task group: it would report every run that a stopping worker lets go of as an error, and would pass a
        # cancelled run on to sends under way, which must finish.
        for ref in event.deliveries:
            self._launch(ref)
        await workflow.wait_condition(self._finished)
        await asyncio.gather(*self._flights)
        if "failed" in self._ended.values():
            raise ApplicationError(f"not delivered: {self._ended}", type="DeliveryFailed", non_retryable=True)
        return self._ended

    @workflow.signal(name=calls.RESOLVE)
    async def resolve(self, *arguments: Any) -> None:
        """An operator's decision, from the outbox or from the Temporal Web UI or CLI; both meet the same rules.

        It takes any number of arguments, because a signal that does not fit its signature would block the workflow.
        """
        if len(arguments) != 1 or not isinstance(arguments[0], dict):
            return self._refused("the argument must be one JSON object")
        order = DecideInput(self._event.event_id, workflow.uuid4().hex, _fields(arguments[0]))
        answer = await workflow.execute_activity(
            calls.DECIDE,
            order,
            result_type=DecideResult,
            start_to_close_timeout=calls.DECIDE_TIMEOUT,
            retry_policy=calls.DECIDE_RETRY,
        )
        if not answer.accepted:
            return self._refused(answer.reason)
        for end in answer.settled:
            self._generations.pop(end.delivery_id, None)  # an answer of before the decision, still on its way, is moot
            self._ended[f"{end.channel}/{end.delivery_id}"] = end.status
            self._unpark(end.delivery_id)
        for ref in answer.to_send:
            self._unpark(ref.delivery_id)
            self._launch(ref)

    def _finished(self) -> bool:
        landed = all(flight.done() for flight in self._flights)
        return landed and not self._parked and workflow.all_handlers_finished()

    def _launch(self, ref: DeliveryRef) -> None:
        """Starts seeing a delivery through, unless this generation of it, or a later one, was started before."""
        if self._generations.get(ref.delivery_id, -1) < ref.generation:
            self._generations[ref.delivery_id] = ref.generation
            self._flights.append(asyncio.create_task(self._see_through(ref)))

    async def _see_through(self, ref: DeliveryRef) -> None:
        result = await self._deliver(ref)
        if self._generations.get(ref.delivery_id) != ref.generation:
            return
        if result.status == "uncertain":
            self._park(ref, result.code or "")
        elif result.status != "superseded":
            self._ended[f"{ref.channel}/{ref.delivery_id}"] = result.status

    async def _deliver(self, ref: DeliveryRef) -> DeliverResult:
        """Sends through the activity; when its worker vanished, asks again: the store knows what happened."""
        order = DeliverInput(self._event.event_id, ref.delivery_id, ref.generation)
        lost = 0
        while True:
            try:
                result: DeliverResult = await workflow.execute_activity(
                    calls.DELIVER,
                    order,
                    result_type=DeliverResult,
                    summary=ref.channel,
                    start_to_close_timeout=calls.DELIVER_TIMEOUT,
                    heartbeat_timeout=calls.HEARTBEAT_TIMEOUT,
                    retry_policy=calls.DELIVER_RETRY,
                )
                return result
            except ActivityError:
                lost += 1
                if lost > 1:
                    await workflow.sleep(min(60, 2**lost))

    def _park(self, ref: DeliveryRef, code: str) -> None:
        self._parked[ref.delivery_id] = (ref, code)
        self._show()

    def _unpark(self, delivery_id: str) -> None:
        if self._parked.pop(delivery_id, None) is not None:
            self._show()

    def _refused(self, reason: str) -> None:
        workflow.logger.warning("decision refused: %s", reason)
        self._refusals = [*self._refusals[-4:], reason]
        self._show()

    def _show(self) -> None:
        """Tells the Temporal Web UI what waits and why."""
        workflow.set_current_details(_details(self._parked, self._refusals))
        if self._event.search_attributes:
            state = calls.STATE_UNCERTAIN if self._parked else calls.STATE_OPEN
            workflow.upsert_search_attributes([calls.STATE.value_set(state)])


def _fields(payload: dict[Any, Any]) -> dict[str, Any]:
    """The fields of a decision that may be passed on: what else was sent could be too deep or too large to encode."""
    return {
        name: value
        for name in calls.DECISION_FIELDS
        if isinstance(value := payload.get(name), str) and len(value) <= calls.MAX_FIELD_CHARS
    }


def _details(parked: dict[str, tuple[DeliveryRef, str]], refusals: list[str]) -> str:
    lines = [
        f"- **{ref.channel}** may have been sent (`{code}`): look at the receiving side, then decide."
        for ref, code in parked.values()
    ]
    if lines:
        lines.append(
            "\nSend the signal `resolve` with one JSON object: `channel`, `expected_status` (`uncertain`), `decision`"
            " (`resend`, which may reach the person twice, `delivered` or `abandon`), `reason`, `operator`."
        )
    lines += [f"- A decision was refused: {reason}" for reason in refusals]
    return "\n".join(lines) or "Nothing waits for a decision."
