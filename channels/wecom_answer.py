"""What WeCom says inside an HTTP 200: its errors are in the body."""

import json
from dataclasses import dataclass
from typing import Any

from channels.exchange import Reply
from domain.outcome import Outcome, OutcomeKind, Scope, Stage, delivered

TOKEN_CODES = frozenset({40014, 41001, 42001})
"""The token was missing, wrong or out of date; the message was not taken."""
CREDENTIAL_CODES = frozenset({40001, 40013, 40056})

_MEANINGS = {
    **dict.fromkeys(TOKEN_CODES, (OutcomeKind.TRANSIENT, Scope.CREDENTIAL)),
    **dict.fromkeys(CREDENTIAL_CODES, (OutcomeKind.REJECTED, Scope.CREDENTIAL)),
    **dict.fromkeys((45009, 45033, 6000), (OutcomeKind.TRANSIENT, Scope.ACCOUNT)),
    **dict.fromkeys((40003, 40031, 60111, 81013), (OutcomeKind.REJECTED, Scope.RECIPIENT)),
    **dict.fromkeys((40008, 44004, 45002), (OutcomeKind.REJECTED, Scope.MESSAGE)),
    **dict.fromkeys((48002, 60011, 60020), (OutcomeKind.REJECTED, Scope.ACCOUNT)),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """A body of the expected shape."""

    errcode: int
    fields: dict[str, Any]

    @classmethod
    def read(cls, reply: Reply) -> "Answer | None":
        """The answer, or None when the body is cut or is not one of WeCom's: a gateway's page, a captive portal's."""
        try:
            fields = json.loads(reply.body) if reply.complete else None
        except (ValueError, RecursionError):
            return None
        if not isinstance(fields, dict) or type(fields.get("errcode")) is not int:
            return None
        return cls(fields["errcode"], fields)

    @property
    def code(self) -> str:
        """The outcome's code."""
        return f"wecom_{self.errcode}"

    def outcome(self, user: str) -> Outcome:
        """For a message to one user. A code that we do not know may mean anything, so it leaves doubt."""
        if self.errcode == 0:
            return self._accepted(user)
        kind, scope = _MEANINGS.get(self.errcode, (OutcomeKind.UNCERTAIN, Scope.MESSAGE))
        return Outcome(kind, self.code, Stage.ANSWERED, scope, http_status=200)

    def _accepted(self, user: str) -> Outcome:
        """Success may still list our only user among those who were left out."""
        if self._lists("invaliduser", user):
            return Outcome(OutcomeKind.REJECTED, "bad_address", Stage.ANSWERED, Scope.RECIPIENT, http_status=200)
        if self._lists("unlicenseduser", user):
            return Outcome(OutcomeKind.REJECTED, "wecom_unlicensed", Stage.ANSWERED, Scope.ACCOUNT, http_status=200)
        message_id = self.fields.get("msgid")
        known = isinstance(message_id, str) and 0 < len(message_id) <= 255
        return delivered(self.code, message_id=message_id if known else None, http_status=200)

    def _lists(self, name: str, user: str) -> bool:
        users = self.fields.get(name)
        return isinstance(users, str) and user.lower() in users.lower().split("|")
