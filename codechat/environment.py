"""How the user calls what is installed beside this Python."""

import shutil
import sys
from pathlib import Path


def shell_command(tool: str) -> str:
    """The shortest words that start an installed console script: its name where PATH finds that very one."""
    script = Path(sys.executable).parent / tool
    found = shutil.which(tool)
    if not script.exists() or (found and Path(found) == script):
        return tool
    return str(script.relative_to(Path.cwd()) if script.is_relative_to(Path.cwd()) else script)
