"""Options of the web server. A server that other computers can reach needs a token."""

import ssl
from dataclasses import dataclass
from pathlib import Path

from pose.errors import UsageError
from pose.live.access import check_token
from pose.utils.options import option


@dataclass(frozen=True, kw_only=True)  # without slots, so that other dataclasses can inherit from it and further bases
class WebOptions:
    """Command-line options of the web server, with their defaults and help texts."""

    host: str = option("127.0.0.1", "--web: address to listen on; here and in --ws, others than loopback need --token")
    port: int = option(8000, "--web: port to listen on; 0 chooses a free port", minimum=0, maximum=65535)
    token: str | None = option(None, "--web: secret that a browser must enter; or set POSE_WEB_TOKEN")
    cert: str | None = option(None, "--web: TLS certificate (PEM), for https")
    key: str | None = option(None, "--web: private key of the certificate (PEM)")
    clients: int = option(4, "--web: maximum number of browsers at a time", minimum=1, maximum=64)
    once: bool = option(False, "--web: exit when the source ends; by default the page offers to play it again")
    keep_hours: float = option(
        24.0, "--web: hours for which recordings can be downloaded before they are deleted", minimum=0.01, maximum=8760
    )
    mirror: bool = option(False, "mirror the image; --web default: only for a browser's camera")
    out: str = option(".", "folder for recordings and snapshots")


@dataclass(frozen=True, kw_only=True)
class WebSettings(WebOptions):
    """Validated settings of a web server; `WebOptions` lists them.

    Raises:
        UsageError: If an option is invalid.
    """

    def __post_init__(self) -> None:
        if self.host.startswith("[") and self.host.endswith("]"):  # IPv6 as in an address
            object.__setattr__(self, "host", self.host[1:-1])
        out = Path(self.out)
        above = next(path for path in (out, *out.absolute().parents) if path.exists())
        if not above.is_dir():
            raise UsageError(f"--out {out}: {'is' if above == out else f'{above} is'} a file, not a folder")
        check_token("host", self.host, self.token)
        if (self.cert is None) != (self.key is None):
            raise UsageError("--cert and --key must be used together: the certificate and its key, as PEM files")
        for name, file in (("cert", self.cert), ("key", self.key)):
            if file is not None and not Path(file).is_file():
                raise UsageError(f"--{name} {file}: no such file")
        self.tls()

    @property
    def scheme(self) -> str:
        """ "https" with a certificate, else "http"."""
        return "http" if self.cert is None else "https"

    def tls(self) -> ssl.SSLContext | None:
        """Return the TLS context; None for plain http.

        Raises:
            UsageError: If the certificate or its key cannot be used.
        """
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
