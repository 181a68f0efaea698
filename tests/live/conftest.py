"""Live tests do not depend on how long a scene takes: each frame waits for the solution that it starts."""

import pytest

from pose.world.live_scene import SceneSolver


@pytest.fixture(autouse=True)
def _scenes_at_once(monkeypatch):
    start = SceneSolver.start

    def waits(self, *arguments):
        start(self, *arguments)
        if self._thread is not None:
            self._thread.join()
        self._seconds = 0.0

    monkeypatch.setattr(SceneSolver, "start", waits)
