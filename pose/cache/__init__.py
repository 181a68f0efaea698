"""Cache of tracked 2D people and of their 3D poses, each stored under its own key.

Computing the 2D people takes most of the run time.

docs/guides/batch.md describes keys, location of the entries, and behaviour when processes are killed.
"""

from pose.cache.results import CachedRun, Found
from pose.cache.store import Cache, open_cache

__all__ = ["Cache", "CachedRun", "Found", "open_cache"]
