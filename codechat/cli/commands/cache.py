"""`codechat cache`: show the caches (replies, verdicts, repositories' worktrees), or empty all."""

from pathlib import Path

from codechat.base.errors import UserError
from codechat.base.template import counted
from codechat.cli.terminal import out, plain_table
from codechat.models.calls.cache import BOUND, Contents, clear, contents
from codechat.sandbox.suites import sharing as verdicts
from codechat.studies.cab.environments import cache as worktrees


def run_cache(arguments: list[str]) -> int:
    """Show the cache, or empty it."""
    if arguments not in ([], ["clear"]):
        raise UserError(f"cache does not take '{arguments[-1]}'", "cache shows what is kept, cache clear empties it")
    if arguments:
        _clear()
    else:
        _show(contents())
    return 0


def _clear() -> None:
    gone = clear()
    _say_removed(counted(gone.entries, "reply", "replies"), gone.path, gone.size)
    tested = verdicts.clear()
    if tested.entries:
        _say_removed(counted(tested.entries, "verdict"), tested.path, tested.size)
    rooms = worktrees.clear()
    if rooms.commits or rooms.images:
        what = f"{counted(rooms.commits, 'unpacked commit')} and {counted(rooms.images, 'image')}"
        _say_removed(what, rooms.path, rooms.size)


def _say_removed(what: str, path: Path, size: int) -> None:
    out.print(f"{what} removed from {path}, {_megabytes(size)} given back", markup=False)


def _show(found: Contents) -> None:
    out.print(f"response cache  {found.path}", markup=False)
    out.print(f"replies         {found.entries}\nsize on disk    {_megabytes(found.size)}")
    out.print(f"bound           {_megabytes(BOUND)}: beyond it, the oldest replies are deleted")
    if found.models:
        table = plain_table("model", "replies", "text", left=1)
        for name, entries, size in found.models:
            table.add_row(name, str(entries), _megabytes(size))
        out.print("")
        out.print(table, markup=False)
    tested = verdicts.contents()
    if tested.entries:
        out.print(f"\nverdicts        {tested.path}", markup=False)
        out.print(f"verdicts kept   {tested.entries}\nsize on disk    {_megabytes(tested.size)}")
    rooms = worktrees.contents()
    if rooms.commits or rooms.images:
        out.print(f"\nrooms           {rooms.path}", markup=False)
        out.print(
            f"commits         {rooms.commits}\nimages          {rooms.images}\nsize on disk    {_megabytes(rooms.size)}"
        )


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
