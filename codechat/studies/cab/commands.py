"""`codechat cache`: the unpacked commits and the images of worktrees."""

from codechat.run.extensions import StudyCache, add_cache
from codechat.studies.cab.environments import commits

add_cache("rooms", StudyCache(commits.contents, commits.clear))
