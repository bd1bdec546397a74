"""`codechat cache`: show the caches (replies, repositories' worktrees), or empty all."""

from codechat.base.errors import UserError
from codechat.base.template import counted
from codechat.cli.terminal import out, plain_table
from codechat.models.calls.cache import BOUND, Contents, clear, contents
from codechat.run.extensions import extensions


def run_cache(arguments: list[str]) -> int:
    if arguments not in ([], ["clear"]):
        raise UserError(f"cache does not take '{arguments[-1]}'", "cache shows what is kept, cache clear empties it")
    if not arguments:
        _show(contents())
        return 0
    replies = clear()
    removed = [(counted(replies.entries, "reply", "replies"), replies.path, replies.size)]
    for found in (cache.clear() for cache in extensions().caches.values()):
        if any(found.counts.values()):
            things = " and ".join(counted(number, name) for name, number in found.counts.items())
            removed.append((things, found.path, found.size))
    for things, path, size in removed:
        out.print(f"{things} removed from {path}, {_megabytes(size)} given back", markup=False)
    return 0


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
    for title, cache in extensions().caches.items():
        kept = cache.contents()
        if any(kept.counts.values()):
            out.print(f"\n{title:<15} {kept.path}", markup=False)
            for name, number in kept.counts.items():
                out.print(f"{f'{name}s':<15} {number}", markup=False)
            out.print(f"size on disk    {_megabytes(kept.size)}")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
