"""What an SMTP reply, or the lack of one, means for the message, by the step that it answered."""

import re

from aiosmtplib import SMTPException, SMTPResponse, SMTPResponseException, SMTPServerDisconnected, SMTPTimeoutError

from channels.failures import ConnectFailure, connect_failure
from channels.smtp_session import Step
from domain.outcome import Outcome, OutcomeKind, Scope, Stage

_STAGES = {Step.CONNECT: Stage.CONNECT, Step.CONTENT: Stage.BODY, Step.DOT: Stage.REPLY}
_SCOPES = {
    Step.CONNECT: Scope.CONFIG,
    Step.EHLO: Scope.CONFIG,
    Step.STARTTLS: Scope.CONFIG,
    Step.AUTH: Scope.CREDENTIAL,
    Step.MAIL: Scope.SENDER,
    Step.RCPT: Scope.RECIPIENT,
}
_MISSING = {Step.STARTTLS: "starttls_missing", Step.AUTH: "auth_unavailable"}

_ENHANCED = re.compile(r"\s*([245]\.\d{1,3}\.\d{1,3})\b")
_RECIPIENT_FAULT = re.compile(r"[45]\.(1\.[012346]|2\.\d+)\b")
_QUEUE_ID = re.compile(r"queued as ([A-Za-z0-9]{1,64})\b", re.IGNORECASE)


def reply_outcome(step: Step, reply: SMTPResponse) -> Outcome:
    """By the class of the basic code. Before the final dot a reply of the wrong class still took nothing."""
    stage = Stage.ANSWERED if step is Step.DOT else _stage(step)
    return Outcome(
        _kind(step, reply.code), _code(reply), stage, _scope(step, reply), provider_message_id=_queue_id(reply)
    )


def error_outcome(step: Step, error: Exception) -> Outcome:
    """Only an answer that is missing or unreadable after the final dot leaves doubt."""
    if isinstance(error, SMTPResponseException) and error.code > 0:
        return reply_outcome(step, SMTPResponse(error.code, error.message))
    if step is Step.DOT:
        return Outcome(OutcomeKind.UNCERTAIN, _silence(error), Stage.REPLY)
    failure = connect_failure(error)
    if step is Step.CONNECT or failure.code == "tls_failed":
        return _unconnected(failure, _stage(step))
    if step in _MISSING and _is_refusal_of_ours(error):
        return Outcome(OutcomeKind.REJECTED, _MISSING[step], Stage.HEADERS, Scope.CONFIG)
    return Outcome(OutcomeKind.TRANSIENT, _silence(error), _stage(step))


def _unconnected(failure: ConnectFailure, stage: Stage) -> Outcome:
    if failure.permanent:
        return Outcome(OutcomeKind.REJECTED, failure.code, stage, Scope.CONFIG)
    return Outcome(OutcomeKind.TRANSIENT, failure.code, stage)


def _stage(step: Step) -> Stage:
    return _STAGES.get(step, Stage.HEADERS)


def _kind(step: Step, code: int) -> OutcomeKind:
    if 500 <= code < 600:
        return OutcomeKind.REJECTED
    if step is not Step.DOT or 400 <= code < 500:
        return OutcomeKind.TRANSIENT
    return OutcomeKind.DELIVERED if 200 <= code < 300 else OutcomeKind.UNCERTAIN


def _code(reply: SMTPResponse) -> str:
    """The reply's text stays out: it often repeats the address."""
    enhanced = _ENHANCED.match(reply.message)
    return f"smtp_{reply.code}_{enhanced[1]}" if enhanced else f"smtp_{reply.code}"


def _scope(step: Step, reply: SMTPResponse) -> Scope:
    if step in (Step.RCPT, Step.DATA, Step.DOT) and _RECIPIENT_FAULT.match(reply.message):
        return Scope.RECIPIENT
    return _SCOPES.get(step, Scope.MESSAGE)


def _queue_id(reply: SMTPResponse) -> str | None:
    found = _QUEUE_ID.search(reply.message)
    return found[1] if found else None


def _is_refusal_of_ours(error: Exception) -> bool:
    """aiosmtplib itself stopped: the server does not offer what the step needs."""
    return isinstance(error, SMTPException) and not isinstance(
        error, SMTPServerDisconnected | SMTPTimeoutError | SMTPResponseException
    )


def _silence(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no_answer"
    return "bad_answer" if isinstance(error, SMTPResponseException) else "connection_lost"
