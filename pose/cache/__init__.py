"""Cache of 2D people, which take most of the time, and of their 3D, each under its own key.

docs/guides/batch.md describes keys, location of the entries, and behaviour when processes are killed.
"""

from pose.cache.results import CachedRun, Found
from pose.cache.store import Cache, open_cache

__all__ = ["Cache", "CachedRun", "Found", "open_cache"]
