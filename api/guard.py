"""Who may use a route: each one names a permission or is marked public, and is refused at start when it does neither."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Depends
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from api import body
from api.auth import Actor, Authenticator
from api.context import context_of
from api.problems import forbidden

BEARER = "bearer"
"""The security scheme's name in the OpenAPI document."""


class Permission:
    """A dependency that hands the actor to an endpoint, after the route has checked it."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def __call__(self, request: Request) -> Actor:
        """The actor that `admit` let in."""
        actor: Actor = request.state.actor
        return actor

    async def admit(self, request: Request, authenticator: Authenticator) -> None:
        """Lets in who has the permission. Raises a Refusal."""
        actor = await authenticator.actor(request.headers.get("authorization"))
        if self.name not in actor.permissions:
            raise forbidden(self.name)
        request.state.actor = actor


async def _anybody() -> None:
    """The dependency of a route that asks for no token."""


PUBLIC: Any = Depends(_anybody)
"""Marks a route that needs no token: `dependencies=[PUBLIC]`."""


def require(permission: str) -> Any:
    """Marks a route that needs this permission: `actor: Annotated[Actor, require("…")]`."""
    return Depends(Permission(permission))


class GuardedRoute(APIRoute):
    """A route that knows who asks before it reads what they ask."""

    permission: Permission | None
    """None: public."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        if self.permission:
            self.openapi_extra = {"security": [{BEARER: []}], "x-permission": self.permission.name}

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's handler behind the checks."""
        handle = super().get_route_handler()
        self.permission = permission = self._declared()
        takes_body = self.body_field is not None

        async def guarded(request: Request) -> Response:
            context = context_of(request)
            if permission:
                await permission.admit(request, context.authenticator)
            if takes_body:
                request = await body.read(request, context.settings.api.max_body_bytes)
            return await handle(request)

        return guarded

    def _declared(self) -> Permission | None:
        marks = [dependency.call for dependency in self.dependant.dependencies]
        named = [mark for mark in marks if isinstance(mark, Permission)]
        if len(named) + marks.count(_anybody) != 1:
            raise TypeError(f"{self.path}: a route is either public or asks for one permission")
        return named[0] if named else None
