"""Server of `pose-webcam --web`, which shows live poses in a browser."""

import asyncio
import re
import signal
import socket
import sys
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pose.errors import PoseError
from pose.live.access import ip_address, is_loopback, token_from
from pose.live.web.settings import WebSettings
from pose_apps.webcam.live_outputs import finish_interrupted_recordings, world_steps
from pose_apps.webcam.options import WebcamConfig, open_loop

if TYPE_CHECKING:
    from pose.live.web.recording import FinishedRecording
    from pose.pipeline import Pipeline

_STUDIO = "import sys; from pose_apps.view import main; sys.exit(main([sys.argv[1], '--studio', '--no-browser']))"
_studios: list[asyncio.subprocess.Process] = []
NO_LIBRARY = 'pose-webcam --web needs aiohttp: pip install "pose-run[web]"'


def web_settings(config: WebcamConfig) -> WebSettings:
    """Validate and return the settings of the server. Call this function before loading networks."""
    values = {entry.name: getattr(config, entry.name) for entry in fields(WebSettings)}
    return WebSettings(**values | {"token": token_from(config.token)})


def check_library() -> None:
    """Check that the web server library is installed. Call this function before loading networks."""
    try:
        import aiohttp  # noqa: F401
    except ModuleNotFoundError as error:
        raise PoseError(NO_LIBRARY) from error


def serve(config: WebcamConfig, pipeline: "Pipeline") -> int:
    """Serve until Ctrl-C, SIGTERM, SIGHUP, `config.seconds` or, with `once`, the source's end; return the status."""
    from pose.live.web.server import WebServer

    settings = web_settings(config)
    steps = world_steps(config, pipeline)
    source = None if not (config.source or config.depth) else partial(open_loop, config, pipeline, steps)
    if source is not None:
        source().close()  # check it now; it is opened again for the first browser
    finish_interrupted_recordings(config)
    server = WebServer(
        pipeline,
        settings,
        source,
        live=config,
        world=steps,
        body=config.body,
        studio=open_studio,
    )
    started = partial(_announce, settings=settings, own_cameras=source is None)
    recorded = partial(_print_recorded, keep_hours=config.keep_hours)
    try:
        asyncio.run(run_until_signal(server.run(started, config.seconds, recorded)))
    finally:
        if names := [recording.folder.name for recording in server.finished_recordings()]:
            _print_line(f"recordings in {config.out}: {', '.join(names)}")
    return 0


async def open_studio(folder: Path) -> str:
    """Start `pose-studio` with a recording, and return the address of its page; it ends with this process."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _STUDIO, str(folder), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    _studios.append(process)  # kept, since the process ends when its object is deleted
    assert process.stdout is not None
    assert process.stderr is not None
    line = (await process.stdout.readline()).decode()
    found = re.search(r"http://\S+", line)
    if found is None:
        said = (await process.stderr.read()).decode().strip().splitlines() or ["pose-studio did not start"]
        raise PoseError(said[-1].removeprefix("error: "))
    return found[0]


def _print_recorded(recording: "FinishedRecording", keep_hours: float) -> None:
    problem = f" ({recording.problem})" if recording.problem else ""
    _print_line(
        f"recorded {recording.frames} frames into {recording.folder}{problem}; "
        f"kept for {keep_hours:g} h while the server runs"
    )


def _print_line(line: str) -> None:
    with suppress(OSError):  # there are no readers any more
        print(line, flush=True)


async def run_until_signal(work: Coroutine[object, None, None]) -> None:
    """Run a coroutine to its end, and cancel it on SIGTERM or SIGHUP. For Ctrl-C, asyncio cancels it itself."""
    task = asyncio.ensure_future(work)
    if sys.platform != "win32":
        events = asyncio.get_running_loop()
        events.add_signal_handler(signal.SIGTERM, task.cancel)
        hang_up = signal.getsignal(signal.SIGHUP)
        if callable(hang_up):  # not with `nohup`

            def end() -> None:
                with suppress(KeyboardInterrupt):
                    hang_up(signal.SIGHUP, None)
                task.cancel()

            events.add_signal_handler(signal.SIGHUP, end)
    try:
        await task
    except asyncio.CancelledError:
        this = asyncio.current_task()
        if this is not None and this.cancelling():
            raise


def _announce(port: int, settings: WebSettings, own_cameras: bool) -> None:
    """Print the address to open in a browser, with the machine's name if all addresses are listened to."""
    address = ip_address(settings.host)
    if address is not None and address.is_unspecified:
        host = socket.gethostname()
    else:
        host = f"[{address}]" if address is not None and address.version == 6 else settings.host
    print(f"open {settings.scheme}://{host}:{port}/ in a browser; Ctrl-C stops", flush=True)
    if own_cameras and settings.cert is None and not is_loopback(settings.host):
        print(
            "warning: browsers on other computers allow their camera only over https; add --cert and --key",
            file=sys.stderr,
        )
