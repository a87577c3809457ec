# What is the program's own, and how programs end: with and without Thalweg alike. Included by plan_mpi(), whose run() and
# settings it uses.
set(beside "${with_persistent};${chain};THALWEG_ALLGATHER=ring;THALWEG_BARRIER=dissemination;THALWEG_ALLTOALLV=spread")

# same(case ranks label "ends"|"" settings program argument…)
macro(same case ranks label how settings program)
  add_test(NAME plan.${name}.${case}.${ranks}
           COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/same.py ${how} ${MPI_MPIEXEC} -n ${ranks} env
                   ${settings} $<TARGET_FILE:plan_${program}_${name}> ${ARGN})
  set_tests_properties(plan.${name}.${case}.${ranks} PROPERTIES LABELS ${label} TIMEOUT 300 SKIP_RETURN_CODE 77 PROCESSORS 2
                       ENVIRONMENT "${plan_environment}")
endmacro()

# Every thread level; below `multiple` nothing of MPI is called from the agent.
foreach(level single funneled serialized multiple)
  set(over ${shm})
  set(label ${inside})
  if(level STREQUAL multiple)
    set(over THALWEG_TRANSPORT=mpi)
    set(label ${inside_current})
  endif()
  same(private_space_${level} 3 ${label} "" "${beside};${over}" private_space ${level})
endforeach()
same(private_space_ucx 3 ${inside} "" "${beside};${ucx}" private_space serialized)

foreach(transport mpi shm ucx)
  set(over ${beside} THALWEG_TRANSPORT=mpi)
  set(label ${one})
  set(counted descriptors)
  if("${transport}" STREQUAL "shm")
    set(over ${beside} ${shm})
    set(label ${current})
  elseif("${transport}" STREQUAL "ucx")
    set(over ${beside} ${ucx} THALWEG_TEST_LEVEL=single)
    set(counted)  # libucp opens its sockets and event polls without close-on-exec
  endif()
  same(ends_unfreed_${transport} 3 ${label} "" "${over}" teardown unfreed)
  same(ends_children_${transport} 2 ${label} "" "${over}" teardown children ${counted})
  foreach(way exit pending abort)
    same(ends_${way}_${transport} 3 ${label} ends "${over}" teardown ${way})
  endforeach()
endforeach()

# The agent's thread, in MPI_Finalize and behind it.
foreach(way plain plan unwrapped)
  run(agent_ends_${way} 2 ${one} "${beside};${ucx};THALWEG_TEST_LEVEL=single" agent_ends ${way})
  run(agent_ends_${way}_mpi 2 full "${beside};THALWEG_TRANSPORT=mpi" agent_ends ${way})
endforeach()

# Sessions and nothing else; MPICH 5.0.2 fails in MPI_Comm_create_from_group where others start beside it.
run(session_only 2 ${current} "${with_sessions};${chain};THALWEG_ALLGATHER=ring;${ucx}" session_only)
run_alone(plan.${name}.session_only.2)
# And beside MPI_Init, which Intel MPI 2021.18 refuses then.
if(NOT name MATCHES "^impi|^openmpi4$")
  foreach(way nonblocking threads)
    run(session_meanwhile_${way} 2 ${current} "${with_sessions};${chain}" sessions_meanwhile ${way})
    run_alone(plan.${name}.session_meanwhile_${way}.2)
  endforeach()
endif()

# MPI begun and ended more than once, as far as the library bears it: two sessions and then the world; sessions, and a world,
# beside one that stays open; and sessions in the world, whose plans and nonblocking calls outlive it.
if(NOT name STREQUAL openmpi4)
  set(in_epochs "${chain};THALWEG_ALLGATHER=ring")
  set(tried_in_epochs "${in_epochs};THALWEG_TUNING=${CMAKE_CURRENT_SOURCE_DIR}/tried_exchanges.json;THALWEG_TRANSPORT=shm")
  set(planned_in_epochs "${with_persistent}:$<TARGET_FILE:thalweg-${family}-sessions>")
  foreach(letters ssWf Hssh HsWsfsh Wssf WHfh WHFh WHpfph)
    set(settings ${in_epochs} ${ucx})
    if(letters STREQUAL WHfh) # exchanges are tried there, and the session outlives the world
      set(settings ${tried_in_epochs})
    endif()
    add_test(NAME plan.${name}.epochs_${letters}.2
             COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/epochs.py ${MPI_MPIEXEC} -n 2 env ${planned_in_epochs}
                     ${settings} $<TARGET_FILE:plan_epochs_${name}> ${letters})
    set_tests_properties(plan.${name}.epochs_${letters}.2 PROPERTIES LABELS mpi TIMEOUT 600 SKIP_RETURN_CODE 77 PROCESSORS 2
                         ENVIRONMENT "${plan_environment}")
    run_alone(plan.${name}.epochs_${letters}.2)
  endforeach()
endif()

# The small typed broadcasts of a dense solver on rows and columns, on pretended hosts because on one nobody looks. Of
# each call MPICH 4.0.2 keeps 55 bytes, without Thalweg too.
if(NOT name STREQUAL mpich4)
  run(grid 4 ${current} "THALWEG_TOPOLOGY=node:4 core:1" grid 3000)
  leave_cores(plan.${name}.grid.4)
  run(grid_full 4 full "THALWEG_TOPOLOGY=node:4 core:1" grid 160000)
  leave_cores(plan.${name}.grid_full.4)
endif()

# A root that broadcasts without pause while one rank sleeps, 10^5 times; and a rank that dies in such a loop. Pieces of
# 4 KiB, which the libraries send at once, so that only Thalweg bounds what nobody has asked for yet.
run(flood 3 ${one} "${chain}" flood 10000 2)
run(flood_chain_full 3 full "${chain}" flood 100000 5)
run(flood_linear_full 3 full "${all};THALWEG_BCAST=linear" flood 100000 5)
run(flood_ucx_full 3 full "${all};THALWEG_BCAST=linear;${ucx};THALWEG_TEST_LEVEL=single" flood 100000 5)
foreach(transport mpi ucx)
  set(over THALWEG_TRANSPORT=mpi)
  if("${transport}" STREQUAL "ucx")
    set(over ${ucx} THALWEG_TEST_LEVEL=single)
  endif()
  add_test(NAME plan.${name}.killed_in_bcast_${transport}
           COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/killed.py 3 2 $<TARGET_FILE:plan_flood_${name}>
                   ${MPI_MPIEXEC} -n 3 env ${preload} ${chain} ${over} $<TARGET_FILE:plan_flood_${name}> 2000000000 0)
  set_tests_properties(plan.${name}.killed_in_bcast_${transport} PROPERTIES LABELS ${one} TIMEOUT 300 PROCESSORS 2
                       ENVIRONMENT "${plan_environment}")
endforeach()

# Ranks whose hosts' names and namespaces disagree: broadcasts, and all collectives where libucp has no network either.
add_test(NAME plan.${name}.places
         COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/places.py ${CMAKE_CURRENT_BINARY_DIR} ${MPI_MPIEXEC}
                 -n 3 env ${preload} ${chain} $<TARGET_FILE:plan_matrix_${name}> chain:chunk_bytes=4K scatter_ring_trimmed)
add_test(NAME plan.${name}.places_ucx
         COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/places.py ${CMAKE_CURRENT_BINARY_DIR} ${MPI_MPIEXEC}
                 -n 3 env ${preload} ${chain} ${ucx} THALWEG_TEST_LEVEL=single THALWEG_ALLGATHER=ring
                 THALWEG_ALLREDUCE=recursive_doubling $<TARGET_FILE:plan_collectives_${name}>)
set_tests_properties(plan.${name}.places plan.${name}.places_ucx PROPERTIES LABELS full TIMEOUT 600 SKIP_RETURN_CODE 77
                     PROCESSORS 2 ENVIRONMENT "${plan_environment}")
set_tests_properties(plan.${name}.places PROPERTIES LABELS ${one})

# Device memory by the other driver.
run(device_hip 2 ${one} "${chain}" device $<TARGET_FILE:plan_fake_hip>)

# A setting that does not exist; how ranks wait that share a core; and what is left to an agent with a core to spare.
foreach(case misspelt wait postings)
  set(program one_host)
  set(asked THALWEG_BCAST_MIN_BYTES=1)
  if("${case}" STREQUAL "wait")
    set(program reported)
    set(asked THALWEG_BCAST=chain:chunk_bytes=64K)
  endif()
  if("${case}" STREQUAL "postings")
    set(program self_driven)
    set(asked ${chain} ${ucx} THALWEG_TEST_LEVEL=single THALWEG_TEST_TAKEN=1 I_MPI_PIN=0)
  endif()
  add_test(NAME plan.${name}.report_of_${case}
           COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/report.py ${CMAKE_CURRENT_BINARY_DIR} ${case}
                   ${MPI_MPIEXEC} -n 2 env ${preload} ${asked} $<TARGET_FILE:plan_${program}_${name}>)
  set_tests_properties(plan.${name}.report_of_${case} PROPERTIES LABELS ${current} TIMEOUT 300 PROCESSORS 2
                       SKIP_RETURN_CODE 77
                       ENVIRONMENT "${plan_environment}")
endforeach()
