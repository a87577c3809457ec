"""hide_plans.py LIBRARY COPY: a copy of an MPI library without persistent collectives, as older ones are.

Their names in the table of dynamic strings get another first letter, so that nobody finds them; nothing else differs.
"""

import re
import sys

library, copy = sys.argv[1:]
with open(library, "rb") as file:
    content = file.read()
# Tails of names are shared: MPI_Bcast_init is the end of PMPI_Bcast_init.
name = re.compile(
    rb"MPI_((?:Neighbor_)?(?:Allgatherv?|Allreduce|Alltoall[vw]?|Barrier|Bcast|Exscan|Gatherv?|Reduce|"
    rb"Reduce_scatter|Reduce_scatter_block|Scan|Scatterv?)_init(?:_c)?\0)",
    re.IGNORECASE,  # MPI_Neighbor_alltoall_init
)
content, count = name.subn(rb"XPI_\1", content)
assert count >= 20, f"{library} has {count} of their names"
with open(copy, "wb") as file:
    file.write(content)
