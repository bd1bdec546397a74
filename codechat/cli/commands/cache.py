"""`codechat cache`: show the caches (replies, repositories' worktrees), bound the replies, or empty all."""

from pathlib import Path

from codechat.base.errors import UserError
from codechat.base.template import counted
from codechat.cli.terminal import out, plain_table
from codechat.models.calls.cache_file import Contents, clear, contents, set_bound
from codechat.studies.cab.environments import cache as worktrees


def run_cache(arguments: list[str]) -> int:
    """Show the cache, set its bound, or empty it."""
    if arguments == ["clear"]:
        _clear()
        return 0
    word, _, value = arguments[0].partition("=") if arguments else ("", "", "")
    if len(arguments) > 1 or word not in ("", "bytes"):
        remedy = "cache shows what is kept, cache clear empties it, cache bytes=N bounds the replies"
        raise UserError(f"cache does not take '{arguments[-1]}'", remedy)
    if word and not (value.isascii() and value.isdigit()):
        raise UserError(f"cache {arguments[0]} gives no number of bytes", "write it as digits: cache bytes=500000000")
    _show(set_bound(int(value)) if word else contents())
    return 0


def _clear() -> None:
    gone = clear()
    _say_removed(counted(gone.entries, "reply", "replies"), gone.path, gone.size)
    rooms = worktrees.clear()
    if rooms.commits or rooms.images:
        what = f"{counted(rooms.commits, 'unpacked commit')} and {counted(rooms.images, 'image')}"
        _say_removed(what, rooms.path, rooms.size)


def _say_removed(what: str, path: Path, size: int) -> None:
    out.print(f"{what} removed from {path}, {_megabytes(size)} given back", markup=False)


def _show(found: Contents) -> None:
    out.print(f"response cache  {found.path}", markup=False)
    out.print(f"replies         {found.entries}\nsize on disk    {_megabytes(found.size)}")
    out.print(f"bound           {_megabytes(found.bound)}: beyond it, the least recently used replies leave")
    if found.models:
        table = plain_table("model", "replies", "text", left=1)
        for name, entries, size in found.models:
            table.add_row(name, str(entries), _megabytes(size))
        out.print("")
        out.print(table, markup=False)
    rooms = worktrees.contents()
    if rooms.commits or rooms.images:
        out.print(f"\nrooms           {rooms.path}", markup=False)
        out.print(
            f"commits         {rooms.commits}\nimages          {rooms.images}\nsize on disk    {_megabytes(rooms.size)}"
        )


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
