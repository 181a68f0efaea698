"""The HTTP interface of the studio: tokens, uploads, results, the history of edits, and hostile requests."""

import asyncio
import base64
import json
import os
import shutil
import socket
from contextlib import suppress
from pathlib import Path

import aiohttp
import av
import numpy as np
import pytest
from mutations import one_line
from pose_apps.studio.command import main
from pose_apps.studio.data import BINS, MAX_FRAMES, MISSING, PIXEL_PARTS
from pose_apps.studio.exports import ResultExporter
from pose_apps.studio.jobs import Jobs
from pose_apps.studio.preview import is_quick, write_preview
from pose_apps.studio.projects import DONE, FIRST, RUNNING, Project, Projects
from pose_apps.studio.server import Studio, StudioSettings
from pose_apps.view import main as view
from pose_fakes import random_result, run_info

from pose.errors import PoseError
from pose.live.web.settings import WebSettings
from pose.results import load_poses
from pose.results.edits import parse_edits, read_edits
from pose.results.recorded import write_results
from pose.video import VideoWriter, open_source

TOKEN = "a token of more than sixteen letters"
FRAMES = 700
DELETE = {"edit": "delete", "person": {"time": 0.0, "x": 1, "y": 2}}


def entry(**changes):
    return DELETE | changes


def edits_of(*entries):
    return {"format": "pose-edits", "version": 1, "edits": list(entries)}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """No worker starts before a request needs it, and a wrong token costs no time."""
    monkeypatch.setattr(Jobs, "warm", lambda *given: None)
    for module in ("server", "uploads"):
        monkeypatch.setattr(f"pose_apps.studio.{module}.WRONG_TOKEN_DELAY_S", 0)


@pytest.fixture(scope="module")
def first_result(tmp_path_factory) -> Path:
    path, rng = tmp_path_factory.mktemp("first") / "first.npz", np.random.default_rng(0)
    write_results([random_result(rng, index, index % 3) for index in range(FRAMES)], run_info(), {"npz": path})
    return path


@pytest.fixture
def projects(tmp_path, first_result) -> Projects:
    """A folder with one clip that is ready."""
    known = Projects(tmp_path / "studio")
    project = known.create("Squats of Ærø.mp4", "fast", None)
    project.clip.write_bytes(bytes(range(256)) * 8)
    shutil.copyfile(first_result, project.result(FIRST))
    project.state = DONE
    known.add(project)
    return known


def served(projects, ask, **limits):
    """What `ask` returns, given a function that requests a path as a program with the token does."""

    async def run():
        settings = WebSettings(port=0, token=TOKEN)
        studio = Studio(StudioSettings(settings=settings, **{"max_gigabytes": 1, **limits}), projects)
        bound = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(studio.run(bound.set_result))
        try:
            port = await asyncio.wait_for(bound, 60)
            async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:

                async def request(method, path, **options):
                    headers = {"Authorization": f"Bearer {TOKEN}"} | options.pop("headers", {})
                    headers_only = options.pop("headers_only", False)
                    async with session.request(method, path, headers=headers, **options) as response:
                        if headers_only:
                            return dict(response.headers)
                        body = await response.read()
                        is_json = response.content_type == "application/json"
                        return response.status, json.loads(body) if is_json else body

                return await ask(request)
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    return asyncio.run(run())


def refused(projects, method, path, requests, **limits):
    """The texts with which the studio refuses each of the requests, one line each."""

    async def ask(request):
        return [await request(method, path, **options) for options in requests]

    answers = served(projects, ask, **limits)
    assert [status for status, _ in answers] == [400] * len(requests)
    texts = [said.decode() for _, said in answers]
    for text in texts:
        one_line(PoseError(text))
    return texts


def only(projects) -> Project:
    (project,) = projects
    return project


def of(projects, rest=""):
    return f"/api/v1/projects/{only(projects).id}{rest}"


def test_nothing_is_told_without_the_token(projects):
    async def ask(request):
        statuses = []
        for given in ("", "Bearer wrong", TOKEN):
            headers = {"Authorization": given}
            for path in ("/api/v1", "/api/v1/projects", of(projects), of(projects, "/video"), of(projects, "/edits")):
                statuses.append((await request("GET", path, headers=headers))[0])
            change = {"revision": 0, "position": 0}
            statuses.append((await request("POST", of(projects, "/edits"), json=change, headers=headers))[0])
        return statuses

    assert served(projects, ask) == [403] * 18


def test_other_pages_and_names_are_refused(projects):
    async def ask(request):
        other = await request("GET", "/", headers={"Host": "evil.example"})
        page = {"Authorization": "", "Origin": "http://evil.example"}
        signed = await request("POST", "/session", json={"token": TOKEN}, headers=page)
        return other[0], signed[0]

    assert served(projects, ask) == (421, 403)


def test_frames_are_those_of_the_result(projects):
    table = load_poses(only(projects).result(FIRST))

    async def ask(request):
        meta = (await request("GET", of(projects, "/results/first")))[1]
        part = (await request("GET", of(projects, "/results/first/frames?first=600&count=9999")))[1]
        limits = [(await request("GET", of(projects, f"/results/first/frames?{query}")))[1]["count"]
                  for query in ("first=0&count=999999", "first=99999")]  # fmt: skip
        return meta, part, limits

    meta, part, limits = served(projects, ask)
    assert limits == [MAX_FRAMES, 0]
    assert meta["frames"] == FRAMES
    assert [person["id"] for person in meta["people"]] == list(table.people)
    assert all(len(base64.b64decode(person["bins"])) == min(BINS, FRAMES) for person in meta["people"])
    assert (part["first"], part["count"]) == (600, FRAMES - 600)
    for person in part["people"]:
        points = np.frombuffer(base64.b64decode(person["points"]), "<i2").reshape(part["count"], -1, 2)
        for row in table.rows_of(person["id"]):
            position = int(np.searchsorted(table.frames, table.frame_index[row])) - 600
            if position < 0 or table.swapped[row].any():
                continue
            seen = table.scores[row] > 0
            assert np.abs(points[position][seen] / PIXEL_PARTS - table.keypoints[row][seen]).max() <= 0.5 / PIXEL_PARTS
            assert (points[position][~seen] == MISSING).all()


def test_the_history_keeps_every_step_and_refuses_an_outdated_change(projects, tmp_path):
    async def ask(request):
        async def change(**body):
            return await request("POST", of(projects, "/edits"), json=body)

        states = [
            await change(revision=0, edits=edits_of(entry())),
            await change(revision=1, edits=edits_of(entry(until=2))),
        ]
        states.append(await change(revision=1, edits=edits_of(entry())))  # another tab, which has not seen the second
        states += [await change(revision=2, position=1), await change(revision=3, position=2)]
        states += [await change(revision=4, position=0), await change(revision=5, edits=edits_of(entry(until=3)))]
        states.append(await change(revision=6, position=2))
        return states

    states = served(projects, ask)
    assert [status for status, _ in states] == [200, 200, 409, 200, 200, 200, 200, 400]
    counts = [len(state["edits"]) for status, state in states if status == 200]
    assert counts == [1, 2, 1, 2, 0, 1]
    again = Projects(projects.folder)
    assert only(again).shown() == only(projects).shown()
    assert json.loads((only(projects).folder / "edits.json").read_text())["edits"] == states[6][1]["edits"]


def test_hostile_edits_are_refused_in_one_line_and_change_nothing(projects):
    before = only(projects).shown()
    bodies = [
        {"revision": 0, "edits": edits_of({"edit": "rename", "person": DELETE["person"], "name": "<script>"})},
        {"revision": 0, "edits": edits_of(entry(until=-1))},
        {"revision": 0, "edits": edits_of(*[DELETE] * 10_001)},
        {"revision": 0, "edits": [DELETE]},
        {"revision": True, "position": 0},
        {"revision": 0, "position": 10**30},
        {"revision": 0, "position": 0, "run": "x"},
        [],
        "x",
    ]
    refused(projects, "POST", of(projects, "/edits"), [{"json": body} for body in bodies])
    assert only(projects).shown() == before


def test_no_other_file_or_value_is_reached(projects):
    paths = ("/results/..%2f..%2fx", "/results/first.npz", "/results/0123456789abcdef", "/results/first/exports/sh",
             "/results/first/frames?first=-1", "/results/first/frames?first=1e9", "/thumbnail", "/video?camera=2",
             "/video?preview=1")  # fmt: skip

    async def ask(request):
        return [await request("GET", of(projects, path)) for path in paths]

    for path, (status, said) in zip(paths, served(projects, ask), strict=True):
        assert status in (400, 404), path
        assert len(said.splitlines()) <= 1, path


def test_hostile_names_of_videos_are_refused(projects):
    names = ("../x.mp4", "x.sh", "a\nb.mp4", "", "x" * 300 + ".mp4", "<b>.mp4", ".mp4/..")
    refused(projects, "POST", "/api/v1/projects", [{"params": {"name": name}, "data": b"x"} for name in names])
    assert len(list(projects.folder.iterdir())) == 1


def test_what_is_no_video_leaves_no_trace(projects):
    cases = {
        "x.mp4": ({}, b"not a video"), "larger than": ({}, b"x" * 3000), "preset": ({"preset": "evil"}, b"x"),
        "height": ({"height": "nan"}, b"x"), "expected metres": ({"height": "tall"}, b"x"),
    }  # fmt: skip
    requests = [{"params": {"name": "x.mp4"} | query, "data": data} for query, data in cases.values()]
    texts = refused(projects, "POST", "/api/v1/projects", requests, max_gigabytes=2e-6)
    for said, text in zip(cases, texts, strict=True):
        assert said in text
    assert len(list(projects.folder.iterdir())) == 1


def test_a_run_that_was_not_finished_is_queued_again(projects):
    project = only(projects)
    project.state = RUNNING
    project.save()
    assert only(Projects(projects.folder)).state == "queued"


@pytest.mark.parametrize(
    "content",
    ["{", "[]", '{"format": "pose-studio", "version": 1}', '{"format": "other", "version": 1}',
     '{"format":"pose-studio","version":1,"name":"x","video":"../../etc/passwd","preset":"fast","height":null,'
     '"state":"done","problem":"","steps":[],"position":0,"revision":0}'],
)  # fmt: skip
def test_a_damaged_project_is_named_in_one_line(projects, content, capsys):
    (only(projects).folder / "project.json").write_text(content)
    assert main([str(projects.folder), "--no-browser"]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "project.json" in error


def test_old_results_of_edits_are_deleted_but_never_the_first(projects, monkeypatch):
    monkeypatch.setattr("pose_apps.studio.projects.MAX_RESULTS", 2)
    project, user = only(projects), only(projects).folder / "notes.npz"
    user.write_bytes(b"the user's")
    names = [f"{number:016x}" for number in range(4)]
    for number, name in enumerate(names):
        project.result(name).write_bytes(b"x")
        os.utime(project.result(name), (number, number))
    project.trim_results(names[0])
    assert {path.stem for path in project.folder.glob("*.npz")} == {FIRST, "notes", names[0], *names[2:]}
    project.trim_results()
    assert {path.stem for path in project.folder.glob("*.npz")} == {"notes"}


def test_edits_that_the_user_wrote_by_hand_are_kept_under_another_name(projects, capsys):
    project = only(projects)
    by_hand = project.folder / "edits.json"
    by_hand.write_text("mine")
    project.change(0, edits=parse_edits(edits_of(entry())))
    assert (project.folder / "edits.json.kept").read_text() == "mine"
    assert len(read_edits(by_hand)) == 1


def test_the_result_is_sent_as_it_is(projects):
    async def ask(request):
        return await request("GET", of(projects, "/results/first/exports/npz"))

    assert served(projects, ask) == (200, only(projects).result(FIRST).read_bytes())


@pytest.fixture
def tiny(tmp_path) -> bytes:
    """A video of three images."""
    with av.open(str(tmp_path / "tiny.mp4"), "w") as out:
        stream = out.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for level in (0, 100, 200):
            out.mux(stream.encode(av.VideoFrame.from_ndarray(np.full((48, 64, 3), level, np.uint8))))
        out.mux(stream.encode(None))
    return (tmp_path / "tiny.mp4").read_bytes()


def test_the_page_plays_a_copy_with_the_same_times_and_frequent_key_frames(tmp_path, monkeypatch):
    clip, copy, times = tmp_path / "a.mp4", tmp_path / "b.mp4", np.cumsum([0.0, *[0.04, 0.03, 0.05] * 10])
    with VideoWriter(clip, (1001, 301), fps=25) as writer:
        for number, time in enumerate(times):
            writer.write(np.full((301, 1001, 3), 8 * number, np.uint8), time)
    monkeypatch.setattr("pose_apps.studio.preview.MAX_SEEK_PIXELS", 5e6)
    assert not is_quick(clip)
    write_preview(clip, copy)
    assert is_quick(copy)
    with open_source(copy) as source, av.open(str(copy)) as container:
        frames = list(source)
        keys = [entry.timestamp for entry in container.streams.video[0].index_entries if entry.is_keyframe]
        tick = container.streams.video[0].time_base
    assert source.info.size == (960, 290)
    assert [frame.time for frame in frames] == pytest.approx(times, abs=1e-3)
    assert [frame.image.mean() for frame in frames] == pytest.approx(8 * np.arange(len(times)), abs=4)
    assert np.diff(keys).max() * tick < 0.3


@pytest.mark.slow
def test_a_worker_copies_only_videos_that_need_it(projects, tiny):
    only(projects).clip.write_bytes(tiny)  # MPEG-4, which browsers do not play

    async def ask(request):
        solved = (await request("POST", of(projects, "/solve"), json=edits_of()))[0]
        while not (shown := (await request("GET", of(projects)))[1])["previews"]:
            await asyncio.sleep(0.1)
        return solved, shown["previews"], [await request("GET", of(projects, f"/video?preview={n}")) for n in (0, 1)]

    solved, previews, videos = served(projects, ask)
    assert (solved, previews) == (200, [1])
    assert videos[0] == (200, tiny)
    assert videos[1] == (200, only(projects).preview(1).read_bytes())


def test_videos_of_several_cameras_wait_for_each_other(projects, tiny):
    async def ask(request):
        new = (await request("POST", "/api/v1/projects", params={"name": "a.mp4", "cameras": "2"}, data=tiny))[1]
        path = f"/api/v1/projects/{new['id']}"
        bad = await request("POST", f"{path}/cameras", params={"name": "../b.mp4"}, data=tiny)
        torn = await request("POST", f"{path}/cameras", params={"name": "b.mp4"}, data=b"not a video")
        early = await request("POST", f"{path}/run", json={})
        before, states = (await request("GET", path))[1], []
        for _ in range(2):  # the second one has no place
            states.append(await request("POST", f"{path}/cameras", params={"name": "b.mov"}, data=tiny))
        await request("POST", f"{path}/cancel", json={})
        videos = [await request("GET", f"{path}/video?camera={number}") for number in (1, 2, 3)]
        return new, [answer[0] for answer in (bad, torn, early)], before, states, videos

    new, refused, before, states, videos = served(projects, ask)
    assert (new["state"], before["state"], refused) == ("incomplete", "incomplete", [400] * 3)
    assert [status for status, _ in states] == [201, 400]
    assert states[0][1]["state"] in ("queued", "running")
    assert [status for status, _ in videos] == [200, 200, 400]
    assert videos[0][1] == videos[1][1] == tiny


def test_cameras_that_never_arrived_are_said(projects):
    waiting = projects.create("a.mp4", "fast", None, 3)
    projects.add(waiting)
    again = Projects(projects.folder).find(waiting.id)
    assert (again.state, again.problem) == ("failed", "not all cameras arrived; choose their videos again")


def test_a_phone_sends_videos_with_its_own_key_and_sees_nothing(projects, tiny, monkeypatch):
    monkeypatch.setattr("pose_apps.studio.uploads.own_address", lambda: "127.0.0.1")
    made = []
    monkeypatch.setattr("pose_apps.studio.jobs.Jobs.add", lambda self, project: made.append(project))

    async def ask(request):
        known = (await request("GET", "/api/v1/phone"))[1]
        address, _, key = known["address"].partition("#token=")
        statuses = []
        async with aiohttp.ClientSession(address) as session:
            own = {"Origin": address.rstrip("/")}
            for headers in (
                {"Authorization": f"Bearer {key}", **own},
                {"Authorization": f"Bearer {key}", "Origin": "http://evil.example"},
                {"Authorization": f"Bearer {TOKEN}", **own},
                own,
            ):
                async with session.post("/upload", params={"name": "p.mp4"}, data=tiny, headers=headers) as response:
                    statuses.append(response.status)
            for path in ("/", "/static/phone.js", "/static/main.js", "/api/v1/projects"):
                async with session.get(path, headers={"Authorization": f"Bearer {key}"}) as response:
                    statuses.append(response.status)
        own = await request("GET", "/api/v1/projects", headers={"Authorization": f"Bearer {key}"})
        return known["code"], statuses, own[0]

    assert served(projects, lambda request: request("GET", "/api/v1/phone"))[0] == 404
    code, statuses, own = served(projects, ask, phone=True)
    assert statuses == [201, 403, 403, 403, 200, 200, 404, 404]
    assert own == 403
    assert [project.name for project in made] == ["p.mp4"]
    assert {len(row) for row in code} == {len(code)}


def test_a_report_is_shown_without_access_to_the_studio(projects, monkeypatch):
    async def written(self, project, name, poses, folder, query):
        (folder / "report.html").write_text("<script>1</script>")
        return [folder / "report.html"]

    monkeypatch.setattr(ResultExporter, "written", written)

    report = of(projects, "/results/first/exports/report?show=1")
    headers = served(projects, lambda request: request("GET", report, headers_only=True))
    assert headers["Content-Security-Policy"].startswith("sandbox allow-scripts; default-src 'none'")
    assert headers["Content-Disposition"] == "inline"


def test_hostile_receivers_are_refused_in_one_line(projects):
    bodies = ({"link": "sh"}, {"link": "osc", "address": "x,mcap=/tmp/x"}, {"link": ["osc"]}, {},
              {"link": "osc", "address": "127.0.0.1:99999999"})  # fmt: skip
    refused(projects, "POST", of(projects, "/results/first/send"), [{"json": body} for body in bodies])


def test_blender_gets_the_characters(projects, tmp_path, monkeypatch):
    program, seen = tmp_path / "bin" / "blender", tmp_path / "seen"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {seen}.new && mv {seen}.new {seen}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")

    async def written(self, project, name, poses, folder, query):
        assert name == "glb"
        (folder / "x.glb").write_bytes(b"glTF")
        return [folder / "x.glb"]

    monkeypatch.setattr(ResultExporter, "written", written)

    async def ask(request):
        about = (await request("GET", "/api/v1"))[1]
        answer = await request("POST", of(projects, "/results/first/blender"), json={})
        while not seen.is_file():
            await asyncio.sleep(0.02)
        return about["blender"], answer[0]

    assert served(projects, ask) == (True, 204)
    arguments = seen.read_text().splitlines()
    assert arguments[0] == "--python-expr"
    assert arguments[-1] == str(only(projects).folder / "blender" / "x.glb")


def test_a_result_opens_as_it_is(projects, tiny, tmp_path, monkeypatch):
    out = tmp_path / "out"
    out.mkdir()
    (out / "video.mp4").write_bytes(tiny)  # as a live recording has it
    shutil.copyfile(only(projects).result(FIRST), out / "poses.npz")
    shown = []
    monkeypatch.setattr("pose_apps.studio.command.serve", lambda options, show: shown.append(show) or 0)
    monkeypatch.chdir(tmp_path)
    assert view([str(out), "--studio"]) == 0
    (project,) = Projects(tmp_path / "pose-studio")
    assert (shown, project.state) == ([project.id], DONE)
    assert project.result(FIRST).read_bytes() == (out / "poses.npz").read_bytes()
    assert project.clip.read_bytes() == tiny
    (out / "video.mp4").unlink()
    assert view([str(out), "--studio"]) == 1  # in one line


@pytest.mark.slow
def test_a_result_plays_to_another_program_until_it_is_stopped(projects):
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("127.0.0.1", 0))
    receiver.settimeout(60)
    port = receiver.getsockname()[1]

    async def ask(request):
        body = {"link": "osc", "address": f"127.0.0.1:{port}"}
        started = await request("POST", of(projects, "/results/first/send"), json=body)
        data = b""
        while not data:  # an empty datagram asks whether anything listens
            data = await asyncio.to_thread(receiver.recv, 65536)
        return started[0], data, (await request("POST", "/api/v1/send/stop", json={}))[0]

    with receiver:
        started, data, stopped = served(projects, ask)
    assert (started, stopped) == (204, 204)
    assert data.startswith((b"/", b"#bundle"))


@pytest.mark.slow
def test_exports_and_events_come_from_a_worker_and_its_errors_are_one_line(projects):
    async def ask(request):
        names = ("angles", "csv", "bvh", "compare?people=0,1")
        exports = [await request("GET", of(projects, f"/results/first/exports/{name}")) for name in names]
        unknown = await request("GET", of(projects, "/results/first/exports/compare?people=0,99"))
        return exports, unknown, await request("GET", of(projects, "/results/first/events"))

    exports, unknown, events = served(projects, ask)
    assert [status for status, _ in exports[:3]] == [200] * 3
    assert exports[0][1].startswith(b"frame,time,person,")
    assert exports[2][1][:2] == b"PK"  # one file for each person
    assert unknown[0] == 422
    one_line(PoseError(unknown[1].decode()))
    assert events[0] == 200
    assert isinstance(events[1]["events"], list)
