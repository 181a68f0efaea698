"""The links that `--send` knows, and the parser of its value."""

from importlib.util import find_spec

from pose.errors import PoseError, UsageError
from pose.live.links import foxglove, lsl, mcap, mqtt, osc, virtual_camera, vmc, vrchat
from pose.live.links.base import Address, LinkKind

LOOPBACK = "127.0.0.1"

LINKS: dict[str, LinkKind] = {
    "vmc": vmc.KIND,
    "vrchat": vrchat.KIND,
    "osc": osc.KIND,
    "lsl": lsl.KIND,
    "mqtt": mqtt.KIND,
    "mcap": mcap.KIND,
    "foxglove": foxglove.KIND,
    "camera": virtual_camera.KIND,
}


def parse_links(text: str) -> list[tuple[str, Address]]:
    """Parse the value of `--send`, and check that the required modules are installed.

    Returns:
        (name, address) of each link.

    Raises:
        UsageError: If a name is unknown or given twice, or an address is invalid.
        PoseError: If a module is not installed.
    """
    found: dict[str, Address] = {}
    for word in text.split(","):
        name, equals, given = word.strip().partition("=")
        if name not in LINKS:
            raise UsageError(f"--send: unknown link {name!r}; known: {', '.join(LINKS)}")
        if name in found:
            raise UsageError(f"--send: {name} is given twice")
        found[name] = _address(name, given, bool(equals))
    for name in found:
        kind = LINKS[name]
        missing = [module for module in kind.modules if find_spec(module) is None]
        if missing:
            raise PoseError(f"--send {name} needs {missing[0]}: pip install 'pose-run[{kind.extra}]'")
    return list(found.items())


def _address(name: str, given: str, has_address: bool) -> Address:
    kind, option = LINKS[name], f"--send {name}"
    if has_address and not given:
        raise UsageError(f"{option}: the address is empty")
    if kind.path is not None:
        path = given or kind.path
        if name == "mcap" and not path:
            raise UsageError(f"{option}: name the file to write, such as --send mcap=run.mcap")
        return Address(option, path=path)
    if not kind.port:
        if given:
            raise UsageError(f"{option}: takes no address; receivers find its streams in the local network")
        return Address(option)
    place, at, number = given.partition("@")
    person = None
    if at:
        if name == "mqtt":
            variables = f"{mqtt.USER_VARIABLE} and {mqtt.PASSWORD_VARIABLE}"
            raise UsageError(f"{option}: expected HOST:PORT; set the environment variables {variables} for a login")
        if not kind.takes_person:
            raise UsageError(f"{option}: sends all people; omit @{number}")
        if not (number.isascii() and number.isdigit()):
            raise UsageError(f"{option}: invalid person {number!r}: expected the id of a person, such as {name}=@2")
        person = int(number)
    host, port = LOOPBACK, str(kind.port)
    if place:
        before, colon, after = place.rpartition(":")
        if not colon or place.endswith("]"):
            host, port = (host, place) if place.isdigit() else (place, port)
        else:
            host, port = before or LOOPBACK, after
    if not (port.isascii() and port.isdigit()) or not 0 < int(port) <= 65535:
        raise UsageError(f"{option}: invalid address {given!r}: expected HOST:PORT, HOST or PORT")
    return Address(option, host.strip("[]"), int(port), person=person)
