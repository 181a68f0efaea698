"""Process clips on a Ray cluster, or on all cores of this machine. Needs `pip install "pose-run[ray]"`.

python examples/batch_ray.py clips results

`pose-batch --engine ray` does the same with retries, a manifest and a cache. This shows the pattern for a program.
"""

import sys
from pathlib import Path

import ray


@ray.remote(num_cpus=1)
class Worker:
    """Owns its networks, which are loaded once."""

    def __init__(self) -> None:
        from pose import Pipeline

        self.pipeline = Pipeline.from_preset("fast", threads=1)

    def process(self, clip: str, target: str) -> str:
        result = self.pipeline.process(clip)
        result.save(target)
        return f"{clip}: {len(result.people)} people"


source, folder = Path(sys.argv[1]), Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
ray.init()
pool = ray.util.ActorPool([Worker.remote() for _ in range(2)])
clips = sorted(source.glob("*.mp4"))
for line in pool.map_unordered(
    lambda worker, clip: worker.process.remote(str(clip), str(folder / f"{clip.stem}.npz")), clips
):
    print(line)
