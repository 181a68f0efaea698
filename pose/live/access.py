"""Who may read what a server sends: a server that other computers can reach needs a token."""

import hmac
import ipaddress
import os

from pose.errors import UsageError

TOKEN_VARIABLE = "POSE_WEB_TOKEN"
MIN_TOKEN_CHARS = 16
MAKE_TOKEN = 'python -c "import secrets; print(secrets.token_urlsafe())"'


def check_token(option: str, host: str, token: str | None) -> None:
    """Check that a server has a token if other computers can reach it, and that the token is long enough.

    Args:
        option: Name of the option with the address, for the error message.
        host: Address to listen on.
        token: Secret that clients must send; None for no token.

    Raises:
        UsageError: If the token is missing or too short.
    """
    if token is None and not is_loopback(host):
        raise UsageError(
            f"--{option} {host} accepts connections from other computers, so --token or {TOKEN_VARIABLE} is "
            f"required (make one: {MAKE_TOKEN})"
        )
    if token is not None and len(token) < MIN_TOKEN_CHARS:
        raise UsageError(f"--token: has {len(token)} characters; minimum: {MIN_TOKEN_CHARS} (make one: {MAKE_TOKEN})")


def token_from(given: str | None) -> str | None:
    """Return the given token, or that of the environment variable `POSE_WEB_TOKEN`; None without a token.

    Unlike an option, the variable does not appear in lists of processes.
    """
    return given or os.environ.get(TOKEN_VARIABLE) or None


def is_loopback(host: str) -> bool:
    """Return whether `host` is a loopback address or `localhost`, which only this computer can reach."""
    if host == "localhost":
        return True
    address = ip_address(host)
    return address is not None and address.is_loopback


def ip_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Parse an IP address, with or without the brackets of IPv6; return None for a host name."""
    try:
        return ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None


def same_secret(given: str, secret: str) -> bool:
    """Compare strings in constant time; lone surrogates, which UTF-8 cannot encode, equal no secret."""
    return hmac.compare_digest(given.encode(errors="surrogatepass"), secret.encode())
