"""Model servers on this machine: placed on its GPUs, started, shared by cells, and ended with their last user.

A `Fleet` holds the servers that a run or a sweep uses; `CellServers` is one cell's view of it, which the cell's models
ask for their address. `lay_out` assigns GPUs to servers, `by_servers` orders cells so that weights load once.
"""

from codechat.models.serving.fleet import FLEET, CellServers, Fleet
from codechat.models.serving.planning import Machine, Placement, by_servers, lay_out, machine_of
from codechat.models.serving.server import Need, Server, needs_in, server_of

__all__ = [
    "FLEET", "CellServers", "Fleet", "Machine", "Need", "Placement", "Server", "by_servers", "lay_out",
    "machine_of", "needs_in", "server_of",
]  # fmt: skip
