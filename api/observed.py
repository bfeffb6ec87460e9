"""Counts every answer by route template; the path itself, which holds ids, is never recorded."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.metrics import Metrics


class Observed:
    """An ASGI middleware."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on and counts its answer."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._count(scope, message["status"])
            await send(message)

        try:
            await self._app(scope, receive, counted)
        except Exception:
            self._count(scope, 500)  # the answer is written outside of us
            raise

    def _count(self, scope: Scope, status: int) -> None:
        route = getattr(scope.get("route"), "path", "(none)")
        self._metrics.requests.labels(scope["method"], route, f"{status // 100}xx").inc()
