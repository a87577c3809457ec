# Operations that advance while their ranks are elsewhere: overlap, soaks, jobs of which a rank is killed, and programs
# whose ranks sit in other calls. Included by plan_mpi(), whose run() and settings it uses; leaves `soak`.
# While the ranks sleep or compute outside MPI; run alone, because what others do would be in the times.
set(overlap "${chain};THALWEG_ALLGATHER=ring;THALWEG_BARRIER=dissemination")
run(overlap 2 mpi "${overlap}" overlap sleeping computing idle fork)
run(overlap_ucx 2 mpi "${overlap};${ucx};THALWEG_TEST_LEVEL=single" overlap sleeping computing rests fork)
run(overlap_shm 2 ${inside} "${overlap};${shm}" overlap sleeping computing idle fork)
# Five silent seconds over the other transports, too.
run(rests 2 full "${overlap};THALWEG_TRANSPORT=mpi" overlap rests)
run(rests_shm 2 full "${overlap};${shm}" overlap rests)
# The longer ones in the full run, but for one library or the current ones.
set(current full)
if(name MATCHES "^(mpich5|openmpi5|impi)$")
  set(current mpi)
endif()
set(one full)
if(name STREQUAL mpich5)
  set(one mpi)
endif()
run(overlap_ucx 3 ${current} "${overlap};${ucx};THALWEG_TEST_LEVEL=single" overlap sleeping)
# Sockets of 8 KiB and messages that libucp copies. libucp 1.13, which comes with Debian's libraries, has finished with a
# message while its end lies in a buffer; younger ones only when it has left. (They ignore THALWEG_UCX_TCP_SNDBUF.)
set(one_of_debian full)
if(name STREQUAL mpich4)
  set(one_of_debian mpi)
endif()
set(overlap_late "${with_persistent};${overlap};THALWEG_TEST_LEVEL=single" UCX_TCP_SNDBUF=8K UCX_TCP_RCVBUF=8K)
run(overlap_late 2 ${one_of_debian} "${overlap_late};${ucx}" overlap late)
# Small ones, because what libucp keeps is one message.
list(APPEND overlap_late THALWEG_BCAST=chain:chunk_bytes=512)
run(overlap_freed 2 ${one_of_debian} "${overlap_late};${ucx}" overlap freed apart)
run(overlap_freed_shm 2 ${one} "${overlap_late};${shm}" overlap freed)
run_alone(plan.${name}.overlap.2 plan.${name}.overlap_ucx.2 plan.${name}.overlap_shm.2 plan.${name}.overlap_ucx.3
          plan.${name}.overlap_late.2 plan.${name}.overlap_freed.2 plan.${name}.overlap_freed_shm.2)
set(crowded "${chain};THALWEG_SETUP=early;THALWEG_ALLGATHER=ring;THALWEG_ALLREDUCE=recursive_doubling;THALWEG_ALLTOALLV=spread")
# Intel MPI's own broadcasts through shared memory give one thread's bytes to another's, without Thalweg too.
if(name MATCHES "^impi")
  list(APPEND crowded I_MPI_COLL_INTRANODE=pt2pt)
endif()
# Threads of all ranks in collectives, four of each, on communicators of their own.
foreach(transport mpi shm ucx)
  run(crowded_${transport} 4 ${one} "${crowded};THALWEG_TRANSPORT=${transport}" crowded)
  run_alone(plan.${name}.crowded_${transport}.4)
endforeach()
# Two threads that ask after the same requests at once.
run(asked_by_two 2 ${current} "${with_forms};${chain}" asked_by_two)
# One that asks after what another one waits for.
run(asked_while_waiting 2 ${current} "${chain}" asked_while_waiting)
# After what fails, and is waited for while it is put in its place.
run(asked_failing 2 ${current} "${chain};THALWEG_ALLTOALLV=spread" asked_failing)
run(asked_finishing 2 ${current} "LD_PRELOAD=${runtime}$<TARGET_FILE:thalweg-${family}>:$<TARGET_FILE:plan_faults_${name}>;${chain};THALWEG_ALLTOALLV=spread;THALWEG_TEST_FAULT=Grequest_complete" asked_failing)
run(asked_behind 2 ${current} "LD_PRELOAD=${runtime}$<TARGET_FILE:thalweg-${family}>:$<TARGET_FILE:plan_gate>;${chain};THALWEG_ALLTOALLV=spread" asked_failing behind)
# A receive buffer that its program's handler of faults opens, on the agent's stack.
run(write_protected 2 ${current} "${overlap};THALWEG_TRANSPORT=mpi" write_protected)
run(write_protected_ucx 2 ${current} "${overlap};${ucx};THALWEG_TEST_LEVEL=single" write_protected)
# A function of the program's, on that stack too.
run(deep_operation 3 ${current} "${chain};THALWEG_TRANSPORT=mpi" deep_operation)
# Random ones.
set(soak "${chain};THALWEG_ALLGATHER=ring;THALWEG_ALLREDUCE=recursive_doubling;THALWEG_BARRIER=dissemination;THALWEG_ALLTOALLV=spread")
run(soak 3 mpi "${soak}" soak 2000)
run(soak_ucx 3 mpi "${soak};${ucx};THALWEG_TEST_LEVEL=single" soak 2000)
run(soak_ucx 4 mpi "${soak};${ucx};THALWEG_ALLGATHER=bruck:ports=2;THALWEG_ALLREDUCE=rabenseifner" soak 2000 2)
run(soak_shm 3 ${inside} "${soak};${shm}" soak 2000)
run(soak_two_hosts 4 ${inside} "${soak};${two_hosts}" soak 500 2)
# In the full run a million under one library, by seeds, so that a run that is cut off keeps what it has; under the
# others, and inside the host, what two minutes bring.
set(two_minutes THALWEG_TEST_SOAK_SECONDS=120)
if(name STREQUAL mpich5)
  foreach(seed RANGE 1 10)
    run(soak_long_${seed} 3 full "${soak};${ucx}" soak 100000 ${seed})
  endforeach()
else()
  run(soak_long 3 full "${soak};${ucx};${two_minutes}" soak 100000 3)
endif()
run(soak_long_shm 3 full "${soak};${shm};${two_minutes}" soak 100000 3)
foreach(transport mpi ucx shm)
  set(settings ${overlap})
  if("${transport}" STREQUAL "shm")
    list(APPEND settings ${shm})
  endif()
  if("${transport}" STREQUAL "ucx")
    list(APPEND settings ${ucx} THALWEG_TEST_LEVEL=single)
  endif()
  add_test(NAME plan.${name}.killed_${transport}
           COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/ended.py ${MPI_MPIEXEC} -n 3 env ${preload}
                   ${settings} $<TARGET_FILE:plan_overlap_${name}> killed)
  set(killed mpi)
  if("${transport}" STREQUAL "shm")
    set(killed ${inside})
  endif()
  # Any rank at any moment, of a job that would go on for long.
  set(settings ${soak} ${settings})
  add_test(NAME plan.${name}.killed_at_random_${transport}
           COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/killed.py 1 10 $<TARGET_FILE:plan_soak_${name}>
                   ${MPI_MPIEXEC} -n 3 env ${preload} ${settings} $<TARGET_FILE:plan_soak_${name}> 100000000)
  set_tests_properties(plan.${name}.killed_${transport} PROPERTIES LABELS ${killed} TIMEOUT 300 PROCESSORS 2
                       ENVIRONMENT "${plan_environment}")
  set_tests_properties(plan.${name}.killed_at_random_${transport} PROPERTIES LABELS full TIMEOUT 3000 PROCESSORS 2
                       ENVIRONMENT "${plan_environment}")
endforeach()
run(nonblocking_early 2 mpi "${chain};THALWEG_SETUP=early" nonblocking)
run(nonblocking_algorithms 3 full "${all};THALWEG_BCAST=scatter_ring_trimmed" nonblocking)
