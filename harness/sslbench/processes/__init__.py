"""Child processes: started, asked, limited, and ended with all that they have started."""

from sslbench.processes.child import Child, ChildError, call_apart, start
from sslbench.processes.fork_server import ForkServer

__all__ = ["Child", "ChildError", "ForkServer", "call_apart", "start"]
