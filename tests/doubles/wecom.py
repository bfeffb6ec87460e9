"""A WeCom on loopback: gives out tokens, takes messages, and can be told what to answer."""

import json
from collections import deque
from collections.abc import Mapping
from typing import Any

from tests.doubles.http_receiver import Behaviour, HttpReceiver, Visit, answer

JsonObject = Mapping[str, Any]


def says(errcode: int, **fields: Any) -> Behaviour:
    """An HTTP 200 with WeCom's own code inside."""
    return answer(body=json.dumps({"errcode": errcode, "errmsg": "scripted", **fields}).encode())


class WeComServer(HttpReceiver):
    """Each token request gets a new token, `token-1`, `token-2`, …; messages are taken whatever token they bear."""

    def __init__(self) -> None:
        super().__init__()
        self.default = self._by_path
        self.token_script: deque[Behaviour] = deque()
        self.send_script: deque[Behaviour] = deque()
        self.tokens = 0
        self.messages: list[dict[str, Any]] = []
        """Every message of which the whole request was read."""

    async def _by_path(self, visit: Visit) -> None:
        await visit.read()
        is_token = visit.received.path.startswith("/cgi-bin/gettoken?")
        await (self._token() if is_token else self._taken(visit))(_AlreadyRead(visit))

    def _token(self) -> Behaviour:
        self.tokens += 1
        if self.token_script:
            return self.token_script.popleft()
        return says(0, access_token=f"token-{self.tokens}", expires_in=7_200)

    def _taken(self, visit: Visit) -> Behaviour:
        self.messages.append(json.loads(visit.received.body))
        return self.send_script.popleft() if self.send_script else says(0, msgid=f"msg-{len(self.messages)}")


class _AlreadyRead(Visit):
    """The same visit for a behaviour that begins by reading."""

    def __init__(self, visit: Visit) -> None:
        super().__init__(visit.reader, visit.writer, visit.received)

    async def read(self) -> None:
        """Read before, to know the path."""
