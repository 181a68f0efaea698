"""Cache of tracked people in 2D and of their 3D poses, each stored under its own key.

Tracking in 2D takes most of the run time, so it need not be repeated if only a setting of the 3D pose changes.

docs/guides/batch.md describes keys, location of the entries, and behaviour when processes are killed.
"""

from pose.results.cache.store import Cache, open_cache

__all__ = ["Cache", "open_cache"]
