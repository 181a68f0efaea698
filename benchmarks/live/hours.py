"""Hours of `pose-webcam --web` on looped clips, with browsers that come and go: memory, frame rate and messages.

    python -m benchmarks.live hours --clip ../shared/videos/walk-by.mp4 --hours 8 --out soak
    python -m benchmarks.live hours --clip a.mp4 --clip b.mp4 --clip c.mp4 --cameras cameras.toml --hours 8 --out soak

The clips are written again at a low frame rate. One client stays connected, because the server closes an idle source.
`OUT/memory.csv` has the memory of the server every 10 s, `OUT/summary.json` the result, which docs/studies/live.md
quotes.
"""

import asyncio
import csv
import json
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import av
import numpy as np

SAMPLE_SECONDS = 10.0
WARM_UP = 0.1  # part of the time after which memory is compared
PERIODS = 8  # parts of the time after the warm-up, whose frame rates are compared
MAX_GROWTH, MAX_SLOWER = 0.02, 0.05
BROWSERS = 2  # clients that come and go at the same time
CHROMIUM_SECONDS = 900.0  # interval of visits of Chromium
MAX_IMAGES = 300  # of a clip, before it plays backwards
COMMAND = "from pose_apps.webcam.command import main; main()"
Sample = dict[str, float]


@dataclass
class Seen:
    """What all clients received."""

    frames: int = 0  # results that the permanent client received
    visits: Counter[str] = field(default_factory=Counter)  # kind of visit -> number
    errors: Counter[str] = field(default_factory=Counter)
    people: Counter[int] = field(default_factory=Counter)  # number of people -> frames


def slow_clip(clip: Path, target: Path, rate: float, slower: float, scale: float) -> None:
    """Write the clip at `rate` frames/s, `slower` times slower, forwards and backwards, scaled."""
    with av.open(str(clip)) as given:
        stream = given.streams.video[0]
        step = max(1, round(float(stream.average_rate or rate) / (slower * rate)))
        images = []
        for index, frame in enumerate(given.decode(stream)):
            if index % step == 0:
                width, height = (2 * round(scale * side / 2) for side in (frame.width, frame.height))
                images.append(frame.reformat(width, height, "rgb24").to_ndarray())
            if len(images) == MAX_IMAGES:
                break
    with av.open(str(target), "w") as out:
        track = out.add_stream("libx264", rate=round(rate), options={"preset": "veryfast"})
        track.height, track.width = images[0].shape[:2]
        track.pix_fmt = "yuv420p"
        for image in [*images, *images[::-1]]:
            out.mux(track.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        out.mux(track.encode(None))


async def follow(address: str, seconds: float, heard: Callable[[dict[str, Any]], None], abrupt: bool = False) -> None:
    """Acknowledge results for some seconds, as the page does; `abrupt`: break the connection off."""
    end = time.monotonic() + seconds
    async with aiohttp.ClientSession() as session:
        async with session.get(address) as page:
            page.raise_for_status()
            await page.read()
        async with session.ws_connect(f"{address}/live", headers={"Origin": address}) as socket:
            while time.monotonic() < end:
                message = await socket.receive(timeout=60)
                if message.type is aiohttp.WSMsgType.BINARY:
                    (length,) = struct.unpack_from("<I", message.data)
                    heard(json.loads(message.data[4 : 4 + length]))
                    await socket.send_str('{"type": "ack", "after": 20}')
                elif message.type is not aiohttp.WSMsgType.TEXT:
                    raise ConnectionError(f"the server closed the connection: {message.extra or message.data}")
            if abrupt and socket._response.connection is not None:
                transport = socket._response.connection.transport
                if transport is not None:
                    transport.abort()


async def stay(address: str, seconds: float, seen: Seen) -> None:
    """Stay connected until the end; a broken connection is an error, and made again."""

    def heard(message: dict[str, Any]) -> None:
        seen.frames += 1
        seen.people[len(message.get("people", []))] += 1

    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        try:
            await follow(address, left, heard)
        except (OSError, TimeoutError, aiohttp.ClientError) as error:
            seen.errors[f"permanent client: {error!r}"[:200]] += 1
            await asyncio.sleep(1)


async def come_and_go(address: str, seconds: float, seen: Seen, chance: random.Random) -> None:
    """Connect for 2 to 120 s, again and again; leave politely, abruptly, or without ever acknowledging."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        abrupt = chance.random() < 0.5
        try:
            await follow(address, chance.uniform(2, 120), lambda message: None, abrupt)
            seen.visits["abrupt" if abrupt else "polite"] += 1
        except (OSError, TimeoutError, aiohttp.ClientError) as error:
            seen.errors[f"visitor: {error!r}"[:200]] += 1
        await asyncio.sleep(chance.uniform(0, 60))


async def visit_with_chromium(address: str, seconds: float, seen: Seen) -> None:
    """Open the page in a real browser for half a minute, now and then."""
    found = next((path for name in ("chromium", "google-chrome") if (path := shutil.which(name))), None)
    end = time.monotonic() + seconds
    while found is not None and time.monotonic() < end:
        words = [found, "--headless", "--no-sandbox", "--disable-gpu", "--mute-audio", "--timeout=30000"]
        browser = await asyncio.create_subprocess_exec(
            "nice", "-n", "19", *words, "--remote-debugging-port=0", address,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        await asyncio.sleep(30)
        with suppress(ProcessLookupError):
            browser.terminate()
        await browser.wait()
        seen.visits["chromium"] += 1
        await asyncio.sleep(CHROMIUM_SECONDS)


def sample(process: int, begun: float, seen: Seen) -> Sample:
    """Return the memory (MiB), threads and open files of a process."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    return {
        "seconds": round(time.monotonic() - begun, 1),
        "rss_mib": round(int(status["VmRSS"].split()[0]) / 1024, 1),
        "threads": int(status["Threads"]),
        "files": len(list(Path(f"/proc/{process}/fd").iterdir())),
        "frames": seen.frames,
    }


async def watch(server: subprocess.Popen[str], seconds: float, seen: Seen, table: Path) -> list[Sample]:
    """Sample the server until the time is over or it ends."""
    begun, samples = time.monotonic(), []
    with table.open("w", newline="") as file:
        writer: csv.DictWriter[str] | None = None
        while time.monotonic() - begun < seconds and server.poll() is None:
            samples.append(sample(server.pid, begun, seen))
            if writer is None:
                writer = csv.DictWriter(file, samples[0].keys())
                writer.writeheader()
            writer.writerow(samples[-1])
            file.flush()
            await asyncio.sleep(min(SAMPLE_SECONDS, seconds / 100))
    return samples


def summary(samples: list[Sample], seen: Seen, messages: str, status: int | None) -> dict[str, Any]:
    """Compare memory and frame rate after the warm-up; messages: what the server wrote to stderr."""
    warm = [one for one in samples if one["seconds"] >= WARM_UP * samples[-1]["seconds"]]
    parts = [part for part in np.array_split(np.arange(len(warm)), PERIODS) if len(part) > 1]
    rss = [float(np.median([warm[i]["rss_mib"] for i in part])) for part in parts]
    rates = [
        (warm[p[-1]]["frames"] - warm[p[0]]["frames"]) / (warm[p[-1]]["seconds"] - warm[p[0]]["seconds"]) for p in parts
    ]
    growth, slower = rss[-1] / rss[0] - 1, 1 - rates[-1] / rates[0]
    lines = [line for line in messages.splitlines() if line.strip() not in ("", "interrupted")]
    return {
        "hours": round(samples[-1]["seconds"] / 3600, 3),
        "memory_mib": {"periods": rss, "highest_after": max(one["rss_mib"] for one in warm)},
        "memory_growth": round(growth, 4),
        "frames_per_second": [round(rate, 3) for rate in rates],
        "threads": [warm[0]["threads"], warm[-1]["threads"]],
        "files": [warm[0]["files"], warm[-1]["files"]],
        "frames": seen.frames,
        "people": dict(sorted(seen.people.items())),
        "visits": dict(seen.visits),
        "errors": dict(seen.errors),
        "messages": lines[:20],
        "status": status,
        "holds": growth <= MAX_GROWTH and slower <= MAX_SLOWER and not seen.errors and not lines and status in (0, 130),
    }


async def soak(given: Namespace) -> dict[str, Any]:
    out: Path = given.out
    out.mkdir(parents=True, exist_ok=True)
    sources = []
    for number, clip in enumerate(given.clip):
        target = out / f"{clip.stem}-{number}.mp4"
        slow_clip(clip, target, given.rate, given.slower, given.scale)
        sources += ["--source", str(target)]
    words = [sys.executable, "-c", COMMAND, "--web", "--port", "0", "--loop", "--out", str(out / "recordings")]
    words += [*sources, "--clients", "8"] + ([] if given.cameras is None else ["--cameras", str(given.cameras)])
    seconds, seen, chance = 3600 * given.hours, Seen(), random.Random(0)
    with (out / "stderr.txt").open("w+") as errors:
        server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True)
        assert server.stdout is not None
        line = await asyncio.to_thread(server.stdout.readline)
        found = [word for word in line.split() if word.startswith("http")]
        assert found, f"no address: {line!r} {(out / 'stderr.txt').read_text()}"
        address = found[0].rstrip("/.,")
        clients = [stay(address, seconds, seen), visit_with_chromium(address, seconds, seen)]
        clients += [come_and_go(address, seconds, seen, chance) for _ in range(BROWSERS)]
        tasks = [asyncio.create_task(client) for client in clients]
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asyncio.current_task().cancel)  # type: ignore[union-attr]
        watching = asyncio.create_task(watch(server, seconds, seen, out / "memory.csv"))
        samples: list[Sample] = []
        try:
            samples = await asyncio.shield(watching)
        except asyncio.CancelledError:
            watching.cancel()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        status = server.poll()
        if status is None:
            server.terminate()  # SIGINT is ignored in the background of a script
            status = await asyncio.to_thread(server.wait, 300)
        if not samples:
            with (out / "memory.csv").open() as file:
                samples = [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]
        return summary(samples, seen, (out / "stderr.txt").read_text(), status)


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--clip", type=Path, action="append", required=True, help="repeat for several cameras")
    parser.add_argument("--cameras", type=Path, help="calibration of several cameras")
    parser.add_argument("--hours", type=float, default=8.0)
    parser.add_argument("--rate", type=float, default=5.0, help="images a second")
    parser.add_argument("--slower", type=float, default=1.0, help="how many times slower the clips play")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the images relative to the clips")
    parser.add_argument("--out", type=Path, required=True, help="folder for the measurements")


def main(given: Namespace) -> int:
    result = asyncio.run(soak(given))
    (given.out / "summary.json").write_text(json.dumps(result, indent=2))
    print(json.dumps(result, indent=2))
    return 0 if result["holds"] else 1
