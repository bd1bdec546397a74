"""`codechat cache`: the unpacked commits and the images of worktrees."""

from codechat.run.extensions import CacheContents, StudyCache, add_cache
from codechat.studies.cab.environments import cache


def _counted(found: cache.Contents) -> CacheContents:
    return CacheContents(found.path, found.size, {"commit": found.commits, "image": found.images})


add_cache("rooms", StudyCache(lambda: _counted(cache.contents()), lambda: _counted(cache.clear())))
