# The tests are tested: with a transport that damages messages each of these programs must complain, about bytes or about
# a message of the wrong size; with the same transport at rest none does. Included by plan_mpi(), whose run() and settings
# it uses. The objects are those of tests/conformance; none is made for the standard ABI.
if(NOT family MATCHES "^(mpich|ompi)$")
  return()
endif()
set(sabotaged LD_PRELOAD=$<TARGET_FILE:saboteur-${family}>)
if(NOT name STREQUAL openmpi4)
  string(APPEND sabotaged ":$<TARGET_FILE:thalweg-${family}-persistent>")
endif()

# sabotage(case program ranks settings argument…): at rest, and in every mode.
macro(sabotage case program ranks settings)
  # In every run under one library: what blocks, what does not, and faces.
  set(damaged full)
  if(name STREQUAL mpich5 AND "${case}" MATCHES "^(types|collectives|halo)$")
    set(damaged mpi)
  endif()
  run(sabotage_rest_${case} ${ranks} ${damaged} "${settings};${sabotaged};THALWEG_SABOTEUR=flip:4000000000" ${program} ${ARGN})
  foreach(mode flip drop repeat swap stale)
    run(sabotage_${mode}_${case} ${ranks} ${damaged} "${settings};${sabotaged};THALWEG_SABOTEUR=${mode}" ${program} ${ARGN})
    set_tests_properties(plan.${name}.sabotage_${mode}_${case}.${ranks} PROPERTIES
                         PASS_REGULAR_EXPRESSION "[a-z_]+\\.[ch]:[0-9]+: rank [0-9]+: ")
  endforeach()
endmacro()
sabotage(matrix matrix 2 "${chain}" chain:chunk_bytes=4K scatter_ring_trimmed)
sabotage(types types 2 "${chain}" chain:chunk_bytes=4K scatter_ring_trimmed)
sabotage(communicators communicators 2 "${chain}")
sabotage(threads threads 2 "${chain}")
sabotage(progress progress 2 "${chain}")
sabotage(device device 2 "${chain}" $<TARGET_FILE:plan_fake_cuda>)
sabotage(nonblocking nonblocking 2 "${chain}")
sabotage(persistent persistent 2 "${chain}")
sabotage(collectives collectives 3 "${forced};THALWEG_ALLGATHER=ring;THALWEG_ALLREDUCE=recursive_doubling")
sabotage(collectives_shm collectives 3 "${forced};${shm};THALWEG_ALLGATHER=ring;THALWEG_ALLREDUCE=recursive_doubling")
sabotage(alltoalls alltoalls 3 "${alltoalls};THALWEG_ALLTOALLV=spread")
sabotage(alltoall_forms alltoall_forms 3 "${alltoalls};THALWEG_ALLGATHER=ring;THALWEG_ALLTOALLV=spread")
sabotage(neighbours neighbours 3 "${neighbours}" 8 3)
sabotage(shapes shapes 3 "${neighbours};${shm}" 300 11)
sabotage(again again 3 "${neighbours};${shm}")
sabotage(halo halo 4 "${halo};${two_hosts};THALWEG_TEST_LEVEL=single" csl)
# Truncated ones by MPICH only, as without damage.
set(parts room)
if(name MATCHES "^mpich")
  set(parts both)
endif()
sabotage(unequal unequal 3 "${unequal};THALWEG_ALLTOALLV=spread" ${parts})
sabotage(edges edges 3 "${edges};THALWEG_ALLTOALLV=spread" ${parts})
sabotage(pieces pieces 3 "${pieces}256;${ucx};THALWEG_TEST_LEVEL=single" 256)
sabotage(repeated repeated 3 "${alltoalls};THALWEG_ALLTOALLV=spread")
sabotage(steady steady 3 "${ucx};THALWEG_ALLTOALLV=spread;THALWEG_TEST_LEVEL=single" allocating)
sabotage(soak soak 3 "${soak}" 500)
# At rest too: as many names for channels as a process has in a job of a million.
run(names 3 ${inside_current} "${chain};${ucx};${sabotaged};THALWEG_TEST_PROCESSES=1048576;THALWEG_ALLGATHER=ring" names)
# Who keeps the addresses of others; overlapping groups hear of them piece by piece.
set(kept THALWEG_TRANSPORT=ucx THALWEG_UCX_TLS=tcp,self "THALWEG_TOPOLOGY=node:2 core:2" THALWEG_TEST_LEVEL=single)
add_test(NAME plan.${name}.report_of_addresses
         COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/report.py ${CMAKE_CURRENT_BINARY_DIR} addresses
                 ${MPI_MPIEXEC} -n 4 env ${sabotaged} ${soak} ${kept} $<TARGET_FILE:plan_counted_${name}>)
set_tests_properties(plan.${name}.report_of_addresses PROPERTIES LABELS ${inside_current} TIMEOUT 300 PROCESSORS 2
                     SKIP_RETURN_CODE 77 ENVIRONMENT "${plan_environment}")
run(names_apart 5 ${inside} "${chain};${ucx};${sabotaged};THALWEG_TOPOLOGY=ranks:0,0,1,1,1;THALWEG_TEST_PROCESSES=1048576;THALWEG_TEST_ADDRESSES_AT_ONCE=2;THALWEG_ALLGATHER=ring" names)
