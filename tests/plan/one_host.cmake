# Blocking broadcasts on one host, which are handed on unseen, and those that tuning tables want tried in turns with the
# MPI library's own. Included by plan_mpi(), whose run() and settings it uses.
foreach(ranks 1 2)
  run(one_host ${ranks} mpi "${all}" one_host)
  run(one_host_large ${ranks} mpi "THALWEG_TUNING=${CMAKE_CURRENT_SOURCE_DIR}/one_host.json" one_host_large)
endforeach()
add_test(NAME plan.${name}.report_of_one_host
         COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/report.py ${CMAKE_CURRENT_BINARY_DIR} one_host
                 ${MPI_MPIEXEC} -n 2 env ${preload} THALWEG_BCAST_MIN_BYTES=1 $<TARGET_FILE:plan_one_host_${name}>)
set_tests_properties(plan.${name}.report_of_one_host PROPERTIES LABELS mpi TIMEOUT 300 PROCESSORS 2
                     ENVIRONMENT "${plan_environment}")

# A file of several tables; and one that has a fault, which is told once, with its place.
run(one_host_listed 2 ${inside_current} "THALWEG_TUNING=${CMAKE_CURRENT_SOURCE_DIR}/listed.json" one_host_large)
add_test(NAME plan.${name}.faulty_tables.2
         COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/said.py
                 "/listed_faulty.json: table 2, row 2: .*; the built-in tables count"
                 ${MPI_MPIEXEC} -n 2 env ${preload} THALWEG_TUNING=${CMAKE_CURRENT_SOURCE_DIR}/listed_faulty.json
                 $<TARGET_FILE:plan_settings_${name}> native)
set_tests_properties(plan.${name}.faulty_tables.2 PROPERTIES LABELS ${inside_current} TIMEOUT 300 PROCESSORS 2
                     ENVIRONMENT "${plan_environment}")

set(tried "THALWEG_TUNING=${CMAKE_CURRENT_SOURCE_DIR}/tried.json")
run(tried 1 mpi "${with_persistent};${tried}" tried)
run(tried 3 mpi "${with_persistent};${tried}" tried)
run(tried_unseen 2 mpi "${tried}" tried unseen)
# In the memory of the host, or by messages of the library where the table says so.
run(tried_inside 2 full "${with_persistent};${tried};THALWEG_TEST_OVER=shm" tried)
set(over "THALWEG_TUNING=${CMAKE_CURRENT_SOURCE_DIR}/tried_over.json;THALWEG_TEST_OVER=mpi")
run(tried_over 2 mpi "${with_persistent};${over}" tried)
run(tried_over 3 full "${with_persistent};${over}" tried)
set(over "THALWEG_TUNING=${CMAKE_CURRENT_SOURCE_DIR}/tried_shm.json")
run(tried_shm 2 mpi "${with_persistent};${over};THALWEG_TEST_OVER=shm" tried)
run(tried_shm_without 2 mpi "${with_persistent};${over};THALWEG_TRANSPORT=mpi" tried asleep)
set(slow "${with_persistent};THALWEG_TUNING=${CMAKE_CURRENT_SOURCE_DIR}/slow.json")
run(tried_slow 2 mpi "${slow}" tried slow)
run(tried_slow 3 full "${slow}" tried slow)
add_test(NAME plan.${name}.report_of_unasked_broadcasts
         COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/report.py ${CMAKE_CURRENT_BINARY_DIR} slow
                 ${MPI_MPIEXEC} -n 2 env ${slow} $<TARGET_FILE:plan_tried_${name}> slow)
set_tests_properties(plan.${name}.report_of_unasked_broadcasts PROPERTIES TIMEOUT 300 PROCESSORS 2
                     LABELS $<IF:$<STREQUAL:${name},mpich5>,mpi,full> ENVIRONMENT "${plan_environment}")
# What the wrappers pass on by themselves behind a verdict, on one rank, and are asked about on another.
set(left "${with_persistent};${all};THALWEG_TUNING=${CMAKE_CURRENT_SOURCE_DIR}/unseen_broadcasts.json")
run(unseen_broadcasts 2 ${inside_current} "${left}" unseen_broadcasts 100000)
run(unseen_broadcasts 3 full "${left}" unseen_broadcasts 3000)
run(unseen_broadcasts_meets 2 ${inside_current} "${left};THALWEG_TRANSPORT=shm" unseen_broadcasts 400 meets)
run(unseen_broadcasts_threads 2 ${inside_current} "${left}" unseen_broadcasts 800 threads)
add_test(NAME plan.${name}.report_of_unseen_broadcasts
         COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/report.py ${CMAKE_CURRENT_BINARY_DIR} broadcasts
                 ${MPI_MPIEXEC} -n 2 env ${left} $<TARGET_FILE:plan_unseen_broadcasts_${name}> 30000)
set_tests_properties(plan.${name}.report_of_unseen_broadcasts PROPERTIES LABELS ${inside_current} TIMEOUT 300
                     PROCESSORS 2 ENVIRONMENT "${plan_environment}")
leave_cores(plan.${name}.unseen_broadcasts.3 plan.${name}.unseen_broadcasts_threads.2)
if(name STREQUAL mpich5)
  set(broken "${with_persistent}:$<TARGET_FILE:plan_faults_${name}>;THALWEG_TUNING=${CMAKE_CURRENT_SOURCE_DIR}/broken.json")
  run(tried_broken 2 mpi "${broken};THALWEG_TRANSPORT=mpi" tried broken)
endif()
run(tried_hosts 4 mpi "${with_persistent};${tried};THALWEG_TOPOLOGY=node:2 core:2" tried)
# No table speaks of such links: what the cost model chooses takes turns with the library's own.
run(tried_model 3 mpi "${with_persistent};THALWEG_RATE=10gbit;THALWEG_LATENCY_US=20;THALWEG_TOPOLOGY=node:3 core:1;THALWEG_TEST_OVER=mpi" tried model)
# The same of gathers and reductions; where the network is measured, or was to be in vain; and on the lane of nonblocking ones.
set(apart "THALWEG_TOPOLOGY=node:3 core:1")
run(tried_told 3 ${inside_current} "${with_persistent};THALWEG_RATE=10gbit;THALWEG_LATENCY_US=20;${apart}" tried_model told)
run(tried_found 3 ${inside_current} "${with_persistent};${apart};THALWEG_TRANSPORT=mpi" tried_model found)
run(tried_medium 3 ${inside_current} "${with_persistent};${apart};THALWEG_TRANSPORT=mpi" tried_model medium)
run(tried_early 3 ${inside} "${with_persistent};${apart};${ucx};THALWEG_SETUP=early" tried_model early)
add_test(NAME plan.${name}.tried_in_vain.3
         COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/said.py "the network between hosts was not measured"
                 ${MPI_MPIEXEC} -n 3 env ${faults} ${apart} THALWEG_TRANSPORT=mpi THALWEG_TEST_FAULT=Isend:1:0
                 $<TARGET_FILE:plan_tried_model_${name}> vain)
set_tests_properties(plan.${name}.tried_in_vain.3 PROPERTIES LABELS ${inside_current} TIMEOUT 300 PROCESSORS 2
                     ENVIRONMENT "${plan_environment}")
leave_cores(plan.${name}.tried_model.3 plan.${name}.tried_told.3 plan.${name}.tried_found.3 plan.${name}.tried_medium.3 plan.${name}.tried_early.3 plan.${name}.tried_in_vain.3)
# What a trial found, or that it ended with its communicator, counts on the next ones: between hosts, and inside one.
run(tried_again 4 ${inside_current} "${with_persistent};THALWEG_RATE=10gbit;THALWEG_LATENCY_US=20;THALWEG_TOPOLOGY=node:4 core:1" tried_again)
leave_cores(plan.${name}.tried_again.4)
set(asleep "THALWEG_TUNING=${CMAKE_CURRENT_SOURCE_DIR}/spinning.json;THALWEG_TOPOLOGY=node:2 core:2;THALWEG_WAIT=sleep")
run(tried_asleep 4 mpi "${asleep}" tried asleep)
if(NOT name MATCHES "_abi$")
  run(tried_fortran 2 mpi "${tried}" tried fortran)
  run(tried_fortran_gathers 3 full "THALWEG_RATE=10gbit;THALWEG_LATENCY_US=20;${apart}" tried_model fortran)
  leave_cores(plan.${name}.tried_fortran_gathers.3)
endif()

set(tried "THALWEG_TUNING=${CMAKE_CURRENT_SOURCE_DIR}/tried_exchanges.json")
foreach(ranks 1 2 3)
  run(tried_exchanges ${ranks} mpi "${with_persistent};${tried}" tried_exchanges)
endforeach()
# More ranks than cores, most of whose calls are the library's: they spun for most of a minute.
leave_cores(plan.${name}.tried.3 plan.${name}.tried_slow.3 plan.${name}.tried_hosts.4 plan.${name}.tried_exchanges.3)
foreach(ranks 2 3)
  run(unseen_exchanges ${ranks} mpi "${with_persistent};THALWEG_TRANSPORT=shm" unseen_exchanges)
  run(unseen_exchanges_tried ${ranks} mpi "${with_persistent};${tried};THALWEG_TRANSPORT=shm" unseen_exchanges)
endforeach()
if(name MATCHES "^openmpi") # handles are pointers there
  run(alike_handles_exchanged 2 mpi "${with_persistent};${tried};THALWEG_TRANSPORT=shm" alike_handles)
endif()
run(tried_again_exchanges 2 ${inside_current} "${with_persistent};${tried}" tried_again exchanges)
run(tried_exchanges_shrunk 2 ${inside_current} "${with_persistent};${tried}" tried_exchanges shrunk)
# A trial whose native calls wait for a core puts off the next by as much.
run_alone(plan.${name}.tried_exchanges_shrunk.2)
run(tried_exchanges_without 2 mpi "${with_persistent};${tried};THALWEG_TRANSPORT=mpi" tried_exchanges native)
# Neighbours, by rows of their own and by what all ranks exchange.
set(tried_neighbours "${with_persistent};THALWEG_TUNING=${CMAKE_CURRENT_SOURCE_DIR}/tried_neighbours.json")
run(tried_neighbours 2 mpi "${tried_neighbours}" tried_neighbours)
run(tried_neighbours 3 ${inside_current} "${tried_neighbours}" tried_neighbours)
run(tried_neighbours_without 2 ${inside_current} "${tried_neighbours};THALWEG_TRANSPORT=mpi" tried_neighbours native)
leave_cores(plan.${name}.tried_neighbours.3)
# Where the memory of the host would take descriptors that the program may want, none is taken.
add_test(NAME plan.${name}.tried_exchanges_few_descriptors.2
         COMMAND ${MPI_MPIEXEC} -n 2 env ${with_persistent} ${tried} sh -c "ulimit -n 120 && exec \"$0\" native"
                 $<TARGET_FILE:plan_tried_exchanges_${name}>)
set_tests_properties(plan.${name}.tried_exchanges_few_descriptors.2 PROPERTIES LABELS mpi TIMEOUT 300 PROCESSORS 2
                     ENVIRONMENT "${plan_environment}")
run(tried_exchanges_hosts 4 mpi "${with_persistent};${tried};THALWEG_TOPOLOGY=node:2 core:2" tried_exchanges pairs)
# Debian's MPICH and Intel MPI over shared memory cannot spawn.
if(NOT name MATCHES "^(mpich4|impi|impi_abi)$")
  run(spawned_tried 2 mpi "${chain};${tried}" spawned)
endif()
add_test(NAME plan.${name}.report_of_unasked
         COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/report.py ${CMAKE_CURRENT_BINARY_DIR} unasked
                 ${MPI_MPIEXEC} -n 2 env ${preload} ${tried} $<TARGET_FILE:plan_tried_exchanges_${name}> few)
set_tests_properties(plan.${name}.report_of_unasked PROPERTIES LABELS mpi TIMEOUT 300 PROCESSORS 2
                     ENVIRONMENT "${plan_environment}")

# Short ones between hosts, which pass unseen as they do on one.
set(apart "THALWEG_TOPOLOGY=node:2 core:1;THALWEG_SETUP=lazy;THALWEG_BCAST=binomial")
run(short 2 mpi "${apart}" short)
run(short_reported 2 mpi "${apart};THALWEG_REPORT=${CMAKE_CURRENT_BINARY_DIR}/short-${name}.json" short)
run(short_meets 2 mpi "${apart}" short meets)

# Persistent alltoalls that a table takes on one host.
if(NOT name STREQUAL openmpi4) # has none
  set(planned "${with_persistent};THALWEG_TUNING=${CMAKE_CURRENT_SOURCE_DIR}/planned.json")
  foreach(level single multiple)
    run(planned_in_memory_${level} 2 mpi "${planned};THALWEG_TEST_LEVEL=${level}" planned_in_memory)
  endforeach()
  run(planned_in_memory 3 mpi "${planned}" planned_in_memory)
  if(NOT name STREQUAL mpich4) # fails in MPI_Start of one rank's plans
    run(planned_in_memory 1 mpi "${planned}" planned_in_memory)
  endif()
  set(planned_neighbours "${with_persistent};THALWEG_TUNING=${CMAKE_CURRENT_SOURCE_DIR}/planned_neighbours.json")
  run(planned_neighbours 2 mpi "${planned_neighbours};THALWEG_TEST_LEVEL=single" planned_neighbours)
  run(planned_neighbours 3 ${inside_current} "${planned_neighbours}" planned_neighbours)
  run(planned_in_memory_refused 2 mpi "${planned}" planned_in_memory refused)
  run(planned_in_memory_left 2 mpi "${planned}" planned_in_memory left)
  set(either "${with_persistent};THALWEG_TUNING=${CMAKE_CURRENT_SOURCE_DIR}/overlapped.json")
  run(planned_either_way 2 mpi "${either};THALWEG_TEST_LEVEL=multiple" planned_in_memory either)
  run(planned_either_way_shm 2 mpi "${either};THALWEG_TRANSPORT=shm" planned_in_memory either)
  set(mixed_tuned "${planned}")
  set(mixed_asked "${with_persistent};THALWEG_ALLTOALLV=spread;THALWEG_TRANSPORT=shm")
  set(mixed_hosts "${with_persistent};THALWEG_ALLTOALLV=spread;THALWEG_TOPOLOGY=node:2 core:1;${ucx}")
  foreach(way tuned asked hosts)
    add_test(NAME plan.${name}.mixed_planners_${way}
             COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/mixed_planners.py persistent ${MPI_MPIEXEC} -n 2
                     env ${mixed_${way}} $<TARGET_FILE:plan_lone_planner_${name}>)
    set_tests_properties(plan.${name}.mixed_planners_${way} PROPERTIES LABELS mpi TIMEOUT 100 PROCESSORS 2
                         SKIP_RETURN_CODE 77 ENVIRONMENT "${plan_environment}")
  endforeach()
  if(NOT name MATCHES "^openmpi") # which has no large counts
    add_test(NAME plan.${name}.mixed_planners_large
             COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/said.py "what wraps calls with large counts"
                     $<TARGET_FILE:Python3::Interpreter> -B ${CMAKE_CURRENT_SOURCE_DIR}/mixed_planners.py bigcount
                     ${MPI_MPIEXEC} -n 2 env ${with_persistent} ${all} THALWEG_BCAST=linear
                     $<TARGET_FILE:plan_lone_planner_${name}> large)
    set_tests_properties(plan.${name}.mixed_planners_large PROPERTIES LABELS mpi TIMEOUT 100 PROCESSORS 2
                         ENVIRONMENT "${plan_environment}")
  endif()
  run(alltoalls_in_memory 3 mpi "${planned}" alltoalls)
  run(alltoall_forms_in_memory 2 mpi "${planned}" alltoall_forms)
endif()

run(cold 2 full "" cold 101)
run(cold_left 2 full "${left}" cold 101)
run(cold_hosts 2 full "THALWEG_TOPOLOGY=node:2 core:1" cold 101 hosts)
run_alone(plan.${name}.cold.2 plan.${name}.cold_left.2 plan.${name}.cold_hosts.2)
