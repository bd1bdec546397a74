"""Model servers on this machine: laid out on its GPUs, started, shared by cells, and ended with their last user.

A `Fleet` holds the servers that a run or a sweep uses; a `CellServers` is one cell's view of it, which the cell's
models ask where they are served. `lay_out` decides which GPUs a server gets, `by_servers` in which order cells load
weights once.
"""

from codechat.models.serving.cell_servers import CellServers
from codechat.models.serving.fleet import FLEET, Fleet
from codechat.models.serving.planning import Machine, Placement, by_servers, lay_out, machine_of
from codechat.models.serving.server import Need, Server, needs_in, server_of

__all__ = [
    "FLEET", "CellServers", "Fleet", "Machine", "Need", "Placement", "Server", "by_servers", "lay_out",
    "machine_of", "needs_in", "server_of",
]  # fmt: skip
