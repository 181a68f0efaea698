"""What a web server is told, and the one rule that nobody may forget: the open network needs a token."""

import ipaddress
import os
import ssl
from dataclasses import dataclass
from pathlib import Path

from pose.errors import UsageError

TOKEN_VARIABLE = "POSE_WEB_TOKEN"
SHORTEST_TOKEN = 16
MAKE_TOKEN = 'python -c "import secrets; print(secrets.token_urlsafe())"'


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSettings:
    """Where a server listens, and whom it lets in. Raises UsageError for what is not allowed.

    token: what a browser must show; None lets everybody in, which only this computer's own addresses allow. cert, key:
    PEM files, for https. clients: browsers served at the same time. out: folder for recordings. keep_hours: how long a
    recording is kept. once: end with the source instead of offering it again.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None
    cert: str | None = None
    key: str | None = None
    clients: int = 4
    out: str = "."
    keep_hours: float = 24.0
    once: bool = False

    def __post_init__(self) -> None:
        if self.token is None and not is_loopback(self.host):
            raise UsageError(
                f"--host {self.host} lets other computers in: give a token as well, --token or {TOKEN_VARIABLE} "
                f"(make one: {MAKE_TOKEN})"
            )
        if self.token is not None and len(self.token) < SHORTEST_TOKEN:
            raise UsageError(
                f"--token: {len(self.token)} characters are too few, at least {SHORTEST_TOKEN} (make one: {MAKE_TOKEN})"
            )
        if (self.cert is None) != (self.key is None):
            raise UsageError("--cert and --key belong together: the certificate and its key, as PEM files")
        for name, file in (("cert", self.cert), ("key", self.key)):
            if file is not None and not Path(file).is_file():
                raise UsageError(f"--{name} {file}: no such file")
        self.tls()

    @property
    def scheme(self) -> str:
        return "http" if self.cert is None else "https"

    def tls(self) -> ssl.SSLContext | None:
        """What encrypts the connections; None for plain http. Raises UsageError for files that do not serve."""
        if self.cert is None:
            return None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            context.load_cert_chain(self.cert, self.key)
        except (ssl.SSLError, OSError) as error:
            raise UsageError(
                f"--cert {self.cert}, --key {self.key}: not a certificate and its key ({error})"
            ) from error
        return context


def token_from(given: str | None) -> str | None:
    """The token on the command line, else that of the environment, where the list of processes does not show it."""
    return given or os.environ.get(TOKEN_VARIABLE) or None


def is_loopback(host: str) -> bool:
    """Whether `host` is an address that only this computer reaches."""
    if host == "localhost":
        return True
    address = ip_address(host)
    return address is not None and address.is_loopback


def ip_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that `host` is, with or without the brackets of an IPv6 address; None for a name."""
    try:
        return ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None
