"""The login page and the end of a login. Both work without scripts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from poller import errors
from poller.bootstrap import Services
from poller.service.access import browser_logins
from poller.service.access.browser_logins import Login
from poller.service.access.login_throttle import LoginThrottle
from poller.web.access import forgery, session_cookies
from poller.web.access.actor_finder import ActorFinder
from poller.web.access.request_origin import RequestOrigin
from poller.web.api.contract import problems
from poller.web.pages.frame import page_frame
from poller.web.pages.frame.html import LoginView

if TYPE_CHECKING:
    from poller.web.pages.frame.html import PageRenderer

Result = TypeVar("Result")

#: Log-ins that are checked at the same time; others wait.
MOST_LOGINS = 4
LARGEST_FORM = 8_192
_LONGEST_NEXT = 2_000
_NO_USERS = "No user can log in yet. On the host of poller: poller user add NAME --role admin"


class LoginPages:
    """The parts that the routes of log-ins share."""

    def __init__(self, services: Services, finder: ActorFinder, page: PageRenderer) -> None:
        self.services = services
        self.finder = finder
        self.throttle = LoginThrottle(services)
        #: Few threads of their own: a flood of log-ins must not take those of other requests.
        self._threads = anyio.CapacityLimiter(MOST_LOGINS)
        self._page = page

    async def in_thread(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Run a part of a login that takes long."""
        call = partial(work, *arguments)
        return await anyio.to_thread.run_sync(call, limiter=self._threads)

    async def form(
        self, request: Request, message: str = "", status: int = 200, after: str = ""
    ) -> HTMLResponse:
        """The page with the form."""
        note = ""
        try:
            means = await self.finder.means()
            if not means.for_people:
                note = _NO_USERS
        except errors.StoreError:
            # Without the name of the server: whoever reads this has not logged in.
            note, status = "Nobody can log in now: the database cannot be used.", 503
        view = LoginView(message, note, after, self.finder.policy.has_provider)
        frame = page_frame.at_once(request)
        return self._page.respond("frame/login.html", frame, status, view=view)

    async def begin(self, request: Request, login: Login, after: str) -> Response:
        """Answer a log-in: a new session under a new value, and no session under the old one."""
        origin: RequestOrigin = request.state.origin
        await self.end(request)
        response = to_path(after)
        lives_s = self.finder.policy.session_s
        session_cookies.store(response, login.value, origin.is_https, lives_s)
        return response

    async def end(self, request: Request) -> None:
        """End the session of the request, if it has one."""
        value = request.state.session_value
        if value:
            actor = request.state.actor
            await run_in_threadpool(browser_logins.log_out, self.services, actor, value)
            self.finder.clear()


def add(app: FastAPI, pages: LoginPages) -> None:
    """Add the login page and the log-out."""

    @app.get("/login", response_class=HTMLResponse)
    async def login_page(request: Request, next: str = "") -> Response:
        """The login page; a visitor who needs no login is sent on."""
        after = local_path(next)
        if request.state.actor is not None:
            return to_path(after)
        return await pages.form(request, after=after)

    @app.post("/login", response_class=HTMLResponse)
    async def log_in(request: Request) -> Response:
        """Check a name and a password."""
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type != forgery.FORM:
            raise errors.InvalidInput("a login is a form", hint="programs use a token")
        fields = forgery.form_fields(await forgery.read_body(request.receive, LARGEST_FORM))
        after = local_path(fields.get("next", ""))
        typed = fields.get("name", ""), fields.get("password", "")
        address = request.state.origin.address
        try:
            login = await pages.in_thread(
                browser_logins.log_in, pages.services, pages.throttle, *typed, address
            )
        except (errors.NotLoggedIn, errors.TooManyRequests) as error:
            response = await pages.form(request, f"{error}.", problems.status(error), after)
            if isinstance(error, errors.TooManyRequests):
                response.headers["Retry-After"] = str(error.retry_after_s)
            return response
        return await pages.begin(request, login, after)

    @app.post("/logout")
    async def log_out(request: Request) -> Response:
        """End the session, and let the browser forget its cookie."""
        await pages.end(request)
        response = RedirectResponse("./login", status_code=303)
        session_cookies.clear(response, request.state.origin.is_https)
        response.headers["Clear-Site-Data"] = '"cache"'
        return response


def local_path(text: str) -> str:
    """Return a path below the root of this site; "" for a text that is none.

    A redirect puts `./` before it, so it cannot name another host.
    """
    if len(text) > _LONGEST_NEXT or not text.isprintable() or "\\" in text:
        return ""
    path = text.lstrip("/")
    if path.partition("?")[0] in ("login", "logout"):
        return ""
    return path


def to_path(after: str) -> RedirectResponse:
    """Send the browser to a path, relative to the present one."""
    return RedirectResponse(f"./{after}", status_code=303)
