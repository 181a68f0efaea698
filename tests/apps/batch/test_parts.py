"""Which clips, whose shard, who does what next, and what is written down."""

import json
import multiprocessing
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pose_apps.batch.clips import BatchClip, find_clips, read_shard, shard_of
from pose_apps.batch.command import BatchConfig, _process_tasks
from pose_apps.batch.manifest import Line, Manifest, table
from pose_apps.batch.schedule import Schedule, StartError, WorkerEvent
from pose_apps.batch.work import BatchTask, TaskResult

from pose.errors import PoseError, UsageError


def touch(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")


def names(inputs, out):
    return [clip.name for clip in find_clips([str(one) for one in inputs], out)]


def test_folder_input_finds_videos_and_image_folders_recursively(tmp_path):
    touch(
        tmp_path / "in", "a.mp4", "notes.doc", ".hidden.mp4", "day/b.MOV", "day/2/c.mkv", "frames/1.png", "frames/2.png"
    )
    touch(tmp_path / "in", ".git/x.mp4", "a/poses.json", "a/overlay.mp4", "day/cover.jpg")
    assert names([tmp_path / "in"], tmp_path / "out") == ["a", "day/b", "day/2/c", "frames"]


def test_output_folder_is_not_searched_for_clips(tmp_path):
    touch(tmp_path, "a.mp4", "out/a/overlay.mp4")
    assert names([tmp_path], tmp_path / "out") == ["a"]


def test_files_globs_lists_and_addresses(tmp_path):
    touch(tmp_path, "x/a.mp4", "x/b.mp4", "y/c.mp4")
    (tmp_path / "list.txt").write_text(
        "# mine\nx/a.mp4\n\ny/*.mp4\nhttp://example.org/films/walk.mp4?key=1\ngone.mp4\n"
    )
    clips = find_clips([str(tmp_path / "x" / "*.mp4"), str(tmp_path / "list.txt")], tmp_path / "out")
    assert [clip.name for clip in clips] == ["a", "b", "c", "walk", "gone"]
    assert [clip.signature() is None for clip in clips] == [False, False, False, True, True]


def test_every_clip_has_its_own_output_folder(tmp_path):
    touch(tmp_path, "x/a.mp4", "x/a.mov", "y/a.mp4", "y/A.mp4", "y/b.mp4")
    found = names([tmp_path / "x", tmp_path / "y"], tmp_path / "out")
    assert len({name.lower() for name in found}) == 5
    assert found[-1] == "b"
    assert found[0] == "a-mov"
    assert found == names([tmp_path / "x", tmp_path / "y"], tmp_path / "out")


@pytest.mark.parametrize("given", ["none.mp4", "none/*.mp4"])
def test_missing_input_gives_a_one_line_error(given, tmp_path):
    with pytest.raises(UsageError, match=r"none.*(no such file or folder|nothing matches)"):
        find_clips([str(tmp_path / given)], tmp_path / "out")


@settings(max_examples=30)
@given(st.sets(st.text(min_size=1, max_size=8), max_size=12), st.integers(1, 9))
def test_every_clip_belongs_to_exactly_one_stable_shard(texts, count):
    clips = [BatchClip(f"/{text}", text) for text in sorted(texts)]
    shards = [shard_of(clips, (index, count)) for index in range(count)]
    assert sorted((clip for shard in shards for clip in shard), key=lambda clip: clip.name) == clips
    for index, shard in enumerate(shards):
        assert shard_of(clips[::2], (index, count)) == [clip for clip in clips[::2] if clip in shard]


@pytest.mark.parametrize("text", ["1", "2/2", "-1/2", "a/b", "1/0", "/", "0/2/3"])
def test_invalid_shard_gives_a_one_line_error(text):
    with pytest.raises(UsageError, match="expected I/N"):
        read_shard(text)


def line(name, status="ok", **more):
    return Line(path=f"/{name}.mp4", name=name, key="k", status=status, **more)


def test_manifest_keeps_the_last_line_of_each_clip(tmp_path):
    manifest = Manifest(tmp_path, None)
    with manifest.writing():
        manifest.add(line("a", "failed", error="no\nvideo"))
        manifest.add(line("b"))
        manifest.add(line("a", frames=7))
        assert len(manifest.path.read_text().splitlines()) == 3
    assert [json.loads(text)["name"] for text in manifest.path.read_text().splitlines()] == ["a", "b"]
    assert Manifest(tmp_path, None).lines["a"] == line("a", frames=7)


def test_manifest_round_trips_video_and_quality_facts(tmp_path):
    video = {"width": 1280, "height": 720, "fps": 29.97, "duration": 4.5}
    quality = {"frames_without_people": 3, "doubtful": [2], "confidence": 0.81, "low_confidence": 0.1, "sigma_mm": 31.5}
    quality["camera_motion"] = None
    camera = {"rotation_degrees": 12.5, "zoom_percent": 0.0, "known": 1.0, "focal_ratio": None}
    manifest = Manifest(tmp_path, None)
    with manifest.writing():
        manifest.add(one := line("a", video=video, quality=quality, version="0.2.0", date="2026-11-23T10:00:00+00:00"))
        manifest.add(line("b", video={"width": "wide"}))
        manifest.add(two := line("c", quality=quality | {"motion": camera}))
    assert Manifest(tmp_path, None).lines == {"a": one, "c": two}


@pytest.mark.parametrize("torn", ['{"path": "/c.mp4", "na', "null", "[]", '{"name": 3}', "\x00\xff"])
def test_invalid_manifest_lines_are_ignored(torn, tmp_path):
    first = Manifest(tmp_path, None)
    with first.writing():
        first.add(line("a"))
    with first.path.open("a") as file:
        file.write(torn)  # the process was killed here
    manifest = Manifest(tmp_path, None)
    assert list(manifest.lines) == ["a"]
    with manifest.writing():
        manifest.add(line("b"))
    assert list(Manifest(tmp_path, None).lines) == ["a", "b"]


def test_interrupt_during_a_manifest_write_keeps_the_line(tmp_path, monkeypatch):
    manifest = Manifest(tmp_path, None)
    with manifest.writing():
        manifest.add(line("a"))
        monkeypatch.setattr("pose_apps.batch.manifest.asdict", interrupted)  # when the file is open
        with pytest.raises(KeyboardInterrupt):
            manifest.add(line("b"))
        monkeypatch.undo()
    assert list(Manifest(tmp_path, None).lines) == ["a", "b"]


def interrupted(*_):
    raise KeyboardInterrupt


def test_shards_write_separate_manifests_that_are_read_together(tmp_path):
    for index in range(2):
        manifest = Manifest(tmp_path, (index, 2))
        with manifest.writing():
            manifest.add(line(f"clip{index}"))
    assert sorted(path.name for path in tmp_path.glob("*.jsonl")) == ["manifest-0-of-2.jsonl", "manifest-1-of-2.jsonl"]
    assert sorted(Manifest(tmp_path, None).lines) == ["clip0", "clip1"]


def _hold(folder, ready, done):
    with Manifest(folder, None).writing():
        ready.set()
        done.wait(200)


def test_concurrent_batches_cannot_write_the_same_manifest(tmp_path):
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    process = context.Process(target=_hold, args=(tmp_path, ready, done), daemon=True)
    process.start()
    try:
        assert ready.wait(200)
        with pytest.raises(PoseError, match="another pose-batch is writing to it"), Manifest(tmp_path, None).writing():
            pass
        with Manifest(tmp_path, (0, 2)).writing():
            pass  # a shard is another file
    finally:
        done.set()
        process.join(200)
    with Manifest(tmp_path, None).writing():
        pass


class Fake:
    """An engine in which what workers do is written down beforehand. script: name -> what happens each time."""

    def __init__(self, workers, script):
        self.workers = workers
        self.script = {name: list(steps) for name, steps in script.items()}
        self.queue = [WorkerEvent(worker, "ready") for worker in range(workers)]
        self.given, self.now, self.hanging = [], 0.0, {}

    def assign(self, worker, task):
        assert worker not in self.hanging
        self.given.append(task.clip.name)
        step = self.script[task.clip.name].pop(0)
        if step == "hang":
            self.hanging[worker] = task
        elif step == "die":
            self.queue += [WorkerEvent(worker, "died", "killed"), WorkerEvent(worker, "ready")]
        else:
            done = Line(path="", name=task.clip.name, key=None, status="ok", attempts=task.attempts)
            done = done if step == "ok" else replace(done, status="failed", error=step)
            self.queue.append(WorkerEvent(worker, "frames", (5, 20)))
            self.queue.append(WorkerEvent(worker, "done", TaskResult(done, retry=step == "bug")))

    def events(self, timeout):
        self.now += timeout
        queue, self.queue = self.queue, []
        yield from queue

    def kill(self, worker):
        del self.hanging[worker]
        self.queue += [WorkerEvent(worker, "died", "killed"), WorkerEvent(worker, "ready")]

    def close(self):
        pass


def outcome(script, workers=2, retries=1, time_limit=10.0):
    engine = Fake(workers, script)
    tasks = [BatchTask(BatchClip(f"/{name}", name)) for name in script]
    schedule = Schedule(engine, tasks, time_limit=time_limit, retries=retries, clock=lambda: engine.now)
    lines = {one.name: (one.status, one.error, one.attempts) for one in schedule.lines()}
    assert sorted(lines) == sorted(script)
    return lines, engine


def test_schedule_finishes_every_clip_despite_failures():
    lines, engine = outcome({"a": ["ok"], "b": ["no video"], "c": ["die", "ok"], "d": ["bug", "ok"], "e": ["ok"]})
    assert lines == {
        "a": ("ok", None, 1),
        "b": ("failed", "no video", 1),
        "c": ("ok", None, 2),
        "d": ("ok", None, 2),
        "e": ("ok", None, 1),
    }
    assert engine.given.count("b") == 1, "a bad clip is bad the second time, too"


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_clip_that_kills_workers_is_given_up_after_the_retries(retries):
    lines, _ = outcome({"a": ["die"] * (retries + 1), "b": ["ok"]}, retries=retries)
    assert lines == {"a": ("failed", "killed", retries + 1), "b": ("ok", None, 1)}


def test_clip_over_the_time_limit_is_ended_and_the_worker_continues():
    lines, _ = outcome({"a": ["hang"], "b": ["ok"], "c": ["ok"]}, workers=1)
    assert lines["a"] == ("failed", "exceeded the time limit of 10 s", 1)
    assert lines["c"] == ("ok", None, 1)


def test_interrupt_message_counts_clips_already_in_the_manifest(tmp_path, monkeypatch):
    manifest, engine = Manifest(tmp_path, None), Fake(1, {"a": ["ok"], "b": ["ok"]})
    add = manifest.add
    monkeypatch.setattr(manifest, "add", lambda line: (add(line), interrupted()))
    monkeypatch.setattr("pose_apps.batch.command._engine", lambda *_: engine)
    tasks = [BatchTask(BatchClip(f"/{name}", name)) for name in engine.script]
    with pytest.raises(KeyboardInterrupt, match="1 of 2 clips finished and kept"), manifest.writing():
        _process_tasks(BatchConfig(quiet=True), None, tasks, manifest, [])
    assert list(Manifest(tmp_path, None).lines) == ["a"]


def test_workers_that_fail_to_start_end_the_batch():
    engine = Fake(1, {})
    engine.events = lambda timeout: iter([WorkerEvent(0, "died", "no memory")])
    with pytest.raises(StartError, match="no memory"):
        list(Schedule(engine, [BatchTask(BatchClip("/a", "a"))], time_limit=1, retries=0).lines())


def test_summary_table_lists_all_clips_or_only_failures(tmp_path):
    lines = [line("a", frames=10, people=2, seconds=1.0), line("b", "failed", error="no video")]
    assert table(lines, finished_before=1, manifest=tmp_path).splitlines() == [
        "clip   frames people  seconds",
        "b           0      0      0.0  failed: no video",
        "a          10      2      1.0",
        f"2 clips, 10 frames, 1 of them already done, 1 failed; {tmp_path}",
    ]
    many = table([line(f"clip{n}") for n in range(100)] + lines[1:], finished_before=0, manifest=tmp_path)
    assert len(many.splitlines()) == 3
