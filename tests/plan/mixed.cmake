# Ranks of one job that differ: in their settings, of which rank 0's count, and in whether they have Thalweg at all. Whatever
# it is, one sentence says so. Included by plan_mpi(), whose settings it uses.

# mixed(case want sentence first others): rank 0 with `first`, ranks 1 and 2 with `others`; a regular expression of what
# is said.
macro(mixed case want sentence first others)
  set(test plan.${name}.settings.${case})
  set(program $<TARGET_FILE:plan_settings_${name}>)
  add_test(NAME ${test}
           COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/said.py "${sentence}" ${MPI_MPIEXEC} -n 1
                   env ${first} ${program} ${want} : -n 2 env ${others} ${program} ${want})
  set_tests_properties(${test} PROPERTIES LABELS mpi TIMEOUT 300 PROCESSORS 2 ENVIRONMENT "${plan_environment}")
  leave_cores(${test})
endmacro()

set(linear ${preload} ${all} THALWEG_BCAST=linear)
set(differ "ranks have different values of")
set(counts "rank 0's count$")
mixed(other_algorithm linear "${differ} THALWEG_BCAST. ${counts}" "${linear}" "${preload};${chain}")
mixed(other_threshold linear "${differ} THALWEG_BCAST_MIN_BYTES. ${counts}" "${linear}" "${linear};THALWEG_BCAST_MIN_BYTES=1G")
mixed(others_off linear "${differ} THALWEG. ${counts}" "${linear}" "${linear};THALWEG=off")
mixed(rank0_off native "${differ} THALWEG. ${counts}" "${linear};THALWEG=off" "${linear}")
set(passes "runs without Thalweg. every call goes to the MPI library$")
mixed(some_without native "rank [12] ${passes}" "${linear}" "THALWEG_TEST_EXPECT=native")
mixed(rank0_without native "rank 0 ${passes}" "THALWEG_TEST_EXPECT=native" "${linear}")

# libucp does not start on one rank: with the right to call the MPI library from any thread that carries the operations, on
# all ranks; without it they are left to it. Rank 0's report says why.
foreach(level single multiple)
  set(test plan.${name}.settings.libucp_on_some_${level})
  set(taken THALWEG_TEST_TAKEN=1)
  if(level STREQUAL "single")
    set(taken)
  endif()
  set(with ${forced} THALWEG_ALLGATHER=ring THALWEG_ALLREDUCE=recursive_doubling THALWEG_TRANSPORT=auto
           THALWEG_TEST_LEVEL=${level} THALWEG_REPORT=-)
  list(REMOVE_ITEM with THALWEG_TEST_TAKEN=1)
  set(program $<TARGET_FILE:plan_collectives_${name}>)
  add_test(NAME ${test}
           COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/lacking.py ${level} ${MPI_MPIEXEC} -n 1
                   env ${with} ${taken} THALWEG_UCX_TLS=tcp,self ${program}
                   : -n 1 env ${with} ${taken} THALWEG_UCX_TLS=no-such-transport ${program}
                   : -n 1 env ${with} ${taken} THALWEG_UCX_TLS=tcp,self ${program})
  set_tests_properties(${test} PROPERTIES LABELS ${current} TIMEOUT 300 PROCESSORS 2 ENVIRONMENT "${plan_environment}")
endforeach()

# MPI_Request_get_status_any past us: by a tool in front on one rank, or because the object that has it is not loaded.
if(NOT name MATCHES "^openmpi|^mpich4$") # which lack it
  set(asks env ${with_forms} THALWEG_ALLTOALLV=spread $<TARGET_FILE:plan_answering_${name}>)
  add_test(NAME plan.${name}.answering_asker COMMAND ${MPI_MPIEXEC} -n 1 ${asks} asker : -n 2 ${asks})
  set_tests_properties(plan.${name}.answering_asker PROPERTIES LABELS ${one} TIMEOUT 300 PROCESSORS 2
                       ENVIRONMENT "${plan_environment}")
  run(questions 2 ${one} "${with_forms};${chain}" questions)
  run(questions_unseen 2 ${one} "${chain}" questions unseen)
endif()

# A plan that one rank starts in Fortran, whose binding calls the C function, and that is over before it comes back; and
# one that fails, in mpi_f08 whose indices count from 0 or from 1.
if(name MATCHES "^(mpich4|impi)$")
  run(started_in_fortran 2 mpi "${with_persistent};${chain}" from_fortran started)
  run(counted_in_f08 2 mpi "${with_persistent};${chain}" from_fortran counted)
endif()
