# What docs/decisions/0057 leaves to the full run of that which plan_mpi() has made for this library: included at its end.

# leave_to_full(regex…): the library's tests whose names match, without "plan.<mpi>.", keep no label but `full`.
function(leave_to_full)
  get_property(tests DIRECTORY PROPERTY TESTS)
  list(FILTER tests INCLUDE REGEX "^plan\\.${name}\\.")
  foreach(regex ${ARGN})
    set(found ${tests})
    list(FILTER found INCLUDE REGEX "^plan\\.${name}\\.(${regex})$")
    if(found)
      set_tests_properties(${found} PROPERTIES LABELS full)
    endif()
  endforeach()
endfunction()

# Numbers of ranks, and the places of the agent and ways between ranks that another case has together.
if(NOT name STREQUAL mpich5)
  leave_to_full(
    "(matrix|communicators|collectives|reductions|neighbours)\\.[125]|(one_host|one_host_large|tried|planned_in_memory)\\.1"
    "(types|arguments|threads|allocations|device|persistent|nonblocking|blocking|creation|idup|tried_exchanges)\\.[12]"
    "unseen_exchanges(_tried)?\\.2"
    "(collectives|reductions|neighbours|halo|steady)_shm\\.[34]|halo\\.3|steady_(strided|strided_mpi|shm_.*|two_hosts)\\.[34]"
    "face_by_face(_ucx|_pieces|_hosts)?\\.3|self_driven_neighbours(_plan)?(_ucx)?\\.3|returned\\.3|neighbours_leader\\.4"
    "soak_ucx\\.4|epochs_(ssWf|Hssh|Wssf)\\.2|yields_single\\.3|small_hosts\\.2"
    # What is learnt, measured and told is ours alone.
    "tried_(unseen|slow|over|asleep|hosts|exchanges_hosts|exchanges_without).*|(sized|uneven)\\.[24]|calibration_usual"
    "report_of_(neighbours|addresses|postings|misspelt|unasked|nonblocking_(shm|ucx))|killed_ucx|short_(reported|meets)\\.2")
endif()

# Of further builds of the same libraries, and of the standard ABI: what is about our own tables, trials, waits and agent.
if(NOT name MATCHES "^(mpich5|openmpi5|impi)$")
  leave_to_full(
    "tried(_exchanges)?\\.3|unseen_exchanges_tried\\.3|one_host_large\\.2|short\\.2"
    "planned_(in_memory_(left|multiple)\\.2|in_memory\\.3|either_way(_shm)?\\.2|neighbours\\.2)|mixed_planners_(asked|hosts)"
    "tried_neighbours\\.2"
    "alltoall(s|_forms)_in_memory\\.[23]|self_driven_(auto|single)\\.2|progress_(sleeping|ucx)\\.2|nonblocking_early\\.2"
    "(blocking_(auto|ucx)|capped)\\.[34]|(collectives|reductions)_(ucx_single|hosts)\\.[34]"
    "repeated_notify\\.4|handled_(early|timed)\\.2|report_of_(one_host|nonblocking_mpi)|spawned_tried\\.2"
    "settings\\.(other_.*|others_off|rank0_off)|small\\.2")
endif()

# A library that another one stands for but for its face: what differs by handles, constants and types.
if(MPI_USUAL)
  get_property(tests DIRECTORY PROPERTY TESTS)
  list(FILTER tests INCLUDE REGEX "^plan\\.${name}\\.")
  list(FILTER tests EXCLUDE REGEX "${MPI_USUAL}")
  set_tests_properties(${tests} PROPERTIES LABELS full)
endif()
