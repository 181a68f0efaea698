"""Access control: Host and Origin headers of a request, and the token.

The Host check prevents DNS rebinding. The Origin check rejects pages of other sites, because browsers let any page open
a WebSocket to any server. A browser that has sent the token gets a cookie, which is valid until the server ends.
"""

import secrets
import socket
from urllib.parse import urlsplit

from aiohttp import web

from pose.live.access import ip_address, is_loopback, same_secret
from pose.live.web.settings import WebSettings

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
    """Access control of a server: Host and Origin headers, token, and the cookie of browsers that gave the token."""

    def __init__(self, settings: WebSettings) -> None:
        self._token = settings.token
        self._cookie = secrets.token_urlsafe(COOKIE_BYTES)
        self._secure = settings.cert is not None
        self._any_address = not is_loopback(settings.host)
        machine = socket.gethostname().lower()
        self._host_names = {settings.host.lower(), "localhost"}
        if self._any_address:
            self._host_names |= {machine, f"{machine}.local"}
        self._cookie_name = ""

    def set_port(self, port: int) -> None:
        """Set the port at which the server listens. Call this before the first request."""
        # With the port, because browsers share cookies between the ports of a host.
        self._cookie_name = f"pose-webcam-{port}"

    def host_allowed(self, request: web.Request) -> bool:
        """Return whether the Host header names this computer: an IP address, loopback unless reachable by others."""
        # DNS rebinding needs a host name. Any IP address is therefore allowed if other computers can reach the server.
        try:
            name = (urlsplit(f"//{request.headers.get('Host', '')}").hostname or "").lower()
        except ValueError:
            return False
        address = ip_address(name)
        if address is not None:
            return self._any_address or address.is_loopback
        return name in self._host_names

    def origin_allowed(self, request: web.Request) -> bool:
        """Return whether the request comes from the server's own page. Requests without an Origin are rejected."""
        scheme, _, authority = request.headers.get("Origin", "").partition("://")
        schemes = {"https"} if self._secure else {"http", "https"}  # a proxy in front of the server may add TLS
        return scheme in schemes and authority.lower() == request.headers.get("Host", "").lower()

    def token_is_valid(self, token: str) -> bool:
        """Return whether a token is correct. The comparison takes constant time."""
        return self._token is not None and same_secret(token, self._token)

    def is_authorised(self, request: web.Request) -> bool:
        """Return whether this browser has sent the token, or no token is required."""
        if self._token is None:
            return True
        return same_secret(request.cookies.get(self._cookie_name, ""), self._cookie)

    def authorise(self, response: web.StreamResponse) -> None:
        """Set the cookie that authorises this browser until the server ends."""
        self._set_cookie(response, self._cookie_name, self._cookie)

    def browser_id(self, request: web.Request) -> str:
        """Return the secret id of this browser from its cookie, or a new id. It identifies the owner of recordings."""
        browser_id = request.cookies.get(f"{self._cookie_name}-browser", "")
        return browser_id if len(browser_id) == len(self._cookie) else secrets.token_urlsafe(COOKIE_BYTES)

    def set_browser_id(self, response: web.StreamResponse, browser_id: str) -> None:
        """Set the cookie with the browser's id."""
        self._set_cookie(response, f"{self._cookie_name}-browser", browser_id)

    def _set_cookie(self, response: web.StreamResponse, name: str, value: str) -> None:
        response.set_cookie(name, value, httponly=True, samesite="Strict", secure=self._secure)


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Add the security headers to a response, as a signal handler of aiohttp that runs before the response is sent."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
