"""`codechat cache`: show what the response cache and the cache of rooms hold, or empty both."""

from rich.table import Table

from codechat.calls.cache import clear, contents
from codechat.cli.terminal import out
from codechat.environments import kept
from codechat.errors import UserError
from codechat.template import counted


def run_cache(arguments: list[str]) -> int:
    """Show the cache, or empty it."""
    if arguments == ["clear"]:
        gone = clear()
        replies = counted(gone.entries, "reply", "replies")
        out.print(f"{replies} removed from {gone.path}, {_megabytes(gone.size)} given back", markup=False)
        rooms = kept.clear()
        if rooms.commits or rooms.images:
            what = f"{counted(rooms.commits, 'unpacked commit')} and {counted(rooms.images, 'image')}"
            out.print(f"{what} removed from {rooms.path}, {_megabytes(rooms.size)} given back", markup=False)
        return 0
    if arguments:
        raise UserError(f"cache does not take '{arguments[0]}'", "cache shows what is kept, cache clear empties it")
    found = contents()
    out.print(f"response cache  {found.path}", markup=False)
    out.print(f"replies         {found.entries}\nsize on disk    {_megabytes(found.size)}")
    if found.models:
        table = Table(box=None, padding=(0, 2, 0, 0))
        table.add_column("model")
        table.add_column("replies", justify="right")
        table.add_column("text", justify="right")
        for name, entries, size in found.models:
            table.add_row(name, str(entries), _megabytes(size))
        out.print("")
        out.print(table, markup=False)
    rooms = kept.contents()
    if rooms.commits or rooms.images:
        out.print(f"\nrooms           {rooms.path}", markup=False)
        out.print(
            f"commits         {rooms.commits}\nimages          {rooms.images}\nsize on disk    {_megabytes(rooms.size)}"
        )
    return 0


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
