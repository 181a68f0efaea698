"""What was computed once and need not be again: people in 2D, which costs the time, and their 3D, each under its key.

docs/guides/batch.md says what is in a key, where entries lie, and what happens when processes die.
"""

from pose.cache.results import CachedRun, Found
from pose.cache.store import Cache, open_cache

__all__ = ["Cache", "CachedRun", "Found", "open_cache"]
