"""Who may come in: the Host and the Origin that a browser states, and the token of those who know it.

Host against DNS rebinding (a page whose name suddenly means this computer), Origin against pages of other sites, which
a browser lets open WebSockets anywhere. What a browser keeps after it showed the token is a cookie of this run.
"""

import hmac
import secrets
import socket
from urllib.parse import urlsplit

from aiohttp import web

from pose.web.settings import WebSettings, ip_address, is_loopback

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    ),
    "Permissions-Policy": "camera=(self), microphone=(), geolocation=(), display-capture=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}
COOKIE_BYTES = 32


class Guard:
    """Answers for one run of a server whether a request may pass."""

    def __init__(self, settings: WebSettings) -> None:
        self._token = settings.token
        self._cookie = secrets.token_urlsafe(COOKIE_BYTES)
        self._secure = settings.cert is not None
        self._any_address = not is_loopback(settings.host)
        machine = socket.gethostname().lower()
        self._names = {settings.host.lower(), "localhost"}
        if self._any_address:
            self._names |= {machine, f"{machine}.local"}
        self._cookie_name = ""

    def listens_at(self, port: int) -> None:
        """The port, which port 0 leaves open until the server listens. Say it before the first request."""
        self._cookie_name = f"pose-webcam-{port}"  # browsers share cookies among the ports of a host

    def host_allowed(self, request: web.Request) -> bool:
        """Whether the request was addressed to this computer, not to a name that somebody else gives it.

        A number cannot be rebound, so any address will do where the server listens to others than this computer.
        """
        try:
            name = (urlsplit(f"//{request.headers.get('Host', '')}").hostname or "").lower()
        except ValueError:
            return False
        address = ip_address(name)
        if address is not None:
            return self._any_address or address.is_loopback
        return name in self._names

    def origin_allowed(self, request: web.Request) -> bool:
        """Whether our own page asks. The origin must be there: every browser states it for what we ask this of."""
        scheme, _, place = request.headers.get("Origin", "").partition("://")
        schemes = {"https"} if self._secure else {"http", "https"}  # a proxy may add the encryption
        return scheme in schemes and place.lower() == request.headers.get("Host", "").lower()

    def token_right(self, token: str) -> bool:
        return self._token is not None and _same(token, self._token)

    def is_authorised(self, request: web.Request) -> bool:
        """Whether this browser showed the token, or none is needed."""
        if self._token is None:
            return True
        return _same(request.cookies.get(self._cookie_name, ""), self._cookie)

    def authorise(self, response: web.StreamResponse) -> None:
        """Let the browser that gets this answer in, until the server ends."""
        self._set_cookie(response, self._cookie_name, self._cookie)

    def browser(self, request: web.Request) -> str:
        """The secret name of this browser, under which it finds its recordings again; a new one if it has none."""
        name = request.cookies.get(f"{self._cookie_name}-browser", "")
        return name if len(name) == len(self._cookie) else secrets.token_urlsafe(COOKIE_BYTES)

    def name_browser(self, response: web.StreamResponse, name: str) -> None:
        """Let the browser keep its name."""
        self._set_cookie(response, f"{self._cookie_name}-browser", name)

    def _set_cookie(self, response: web.StreamResponse, name: str, value: str) -> None:
        response.set_cookie(name, value, httponly=True, samesite="Strict", secure=self._secure)


def _same(shown: str, secret: str) -> bool:
    """In constant time. What is no text (JSON and cookies may hold halves of characters) is only different."""
    return hmac.compare_digest(shown.encode(errors="surrogatepass"), secret.encode())


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """A signal of aiohttp: every answer carries the headers."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
