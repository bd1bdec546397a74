"""`codechat cache`: show the caches (replies, verdicts, repositories' worktrees), bound the replies, or empty all."""

from pathlib import Path

from codechat.base.errors import UserError
from codechat.base.template import counted
from codechat.cli.terminal import out, plain_table
from codechat.models.calls.cache_file import Contents, clear, contents, set_bound
from codechat.run.extensions import extensions
from codechat.sandbox.suites import sharing as verdicts


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
    tested = verdicts.clear()
    if tested.entries:
        _say_removed(counted(tested.entries, "verdict"), tested.path, tested.size)
    for cache in extensions().caches.values():
        removed = cache.clear()
        if any(removed.counts.values()):
            what = " and ".join(counted(number, name) for name, number in removed.counts.items())
            _say_removed(what, removed.path, removed.size)


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
    tested = verdicts.contents()
    if tested.entries:
        out.print(f"\nverdicts        {tested.path}", markup=False)
        out.print(f"verdicts kept   {tested.entries}\nsize on disk    {_megabytes(tested.size)}")
    for title, cache in extensions().caches.items():
        kept = cache.contents()
        if any(kept.counts.values()):
            out.print(f"\n{title:<15} {kept.path}", markup=False)
            for name, number in kept.counts.items():
                out.print(f"{f'{name}s':<15} {number}", markup=False)
            out.print(f"size on disk    {_megabytes(kept.size)}")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
