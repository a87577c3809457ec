# Tools in front of Thalweg that answer calls themselves, and keep them from it. Included by plan_mpi() behind faults.cmake,
# whose run() and settings it uses.
# MPI_Finalize answered by a tool in front.
set(reported "${with_persistent};${chain};THALWEG_ALLGATHER=ring;THALWEG_REPORT=${CMAKE_CURRENT_BINARY_DIR}/${name}")
run(answered 2 ${current} "${reported}/answered.json" answered all)
run(answered_one 3 ${one} "${reported}/answered_one.json" answered one)
run(answered_plan 2 ${one} "${reported}/answered_plan.json" answered one plan)
# On one rank a tool in front keeps what would set a communicator up.
foreach(kept tool maker)
  set(answering env ${preload} THALWEG_ALLTOALLV=spread $<TARGET_FILE:plan_answering_${name}>)
  add_test(NAME plan.${name}.answering_${kept}
           COMMAND ${MPI_MPIEXEC} -n 1 ${answering} ${kept} : -n 2 ${answering})
  set_tests_properties(plan.${name}.answering_${kept} PROPERTIES LABELS ${one} TIMEOUT 300 PROCESSORS 2
                       ENVIRONMENT "${plan_environment}")
endforeach()
set(answering env ${with_forms} ${all} THALWEG_BCAST=linear THALWEG_ALLTOALLV=spread)
set(answering_more plan.${name}.answering_creator)
if(NOT name MATCHES "^openmpi") # which has no large counts
  add_test(NAME plan.${name}.answering_large
           COMMAND ${MPI_MPIEXEC} -n 1 ${answering} $<TARGET_FILE:plan_answering_${name}> large
                   : -n 2 ${answering} $<TARGET_FILE:plan_answering_${name}>)
  list(APPEND answering_more plan.${name}.answering_large)
endif()
add_test(NAME plan.${name}.answering_creator
         COMMAND ${MPI_MPIEXEC} -n 1 ${answering} THALWEG_SETUP=early $<TARGET_FILE:plan_answering_${name}> creator
                 : -n 2 ${answering} THALWEG_SETUP=early $<TARGET_FILE:plan_answering_${name}> creation)
set_tests_properties(${answering_more} PROPERTIES LABELS ${one} TIMEOUT 300 PROCESSORS 2
                     ENVIRONMENT "${plan_environment}")
# A library with wide integers of Fortran.
run(answering_integers 2 ${one} "${faults};THALWEG_ALLTOALLV=spread;THALWEG_TEST_FAULT=integers" answering)
# A program that completes requests by a function of Fortran's of its own, and one that broadcasts so.
if(name MATCHES "^(mpich4|impi|openmpi4)$") # the libraries with Fortran
  run(fronted 2 mpi "${chain}" fronted)
  run(fronted_alone 3 mpi "${chain}" fronted_alone)
  run(plain_names_called 2 mpi "${chain}" plain_names called $<TARGET_FILE:plan_plain_calls>)
  set(plain_names env ${preload} ${chain} $<TARGET_FILE:plan_plain_names_${name}>)
  add_test(NAME plan.${name}.plain_names_begun
           COMMAND ${MPI_MPIEXEC} -n 1 ${plain_names} begins $<TARGET_FILE:plan_plain_calls>
                   : -n 2 ${plain_names} beside $<TARGET_FILE:plan_plain_calls>)
  set_tests_properties(plan.${name}.plain_names_begun PROPERTIES LABELS mpi TIMEOUT 300 SKIP_RETURN_CODE 77 PROCESSORS 2
                       ENVIRONMENT "${plan_environment}")
endif()
# A library in C that has functions of its own by Fortran's names.
run(plain_names_own 2 ${current} "${chain}" plain_names own $<TARGET_FILE:plan_namesakes>)
# One that has none, but takes the address of the library's.
if(name STREQUAL "openmpi4")
  run(address_taken 2 mpi "${chain}" address_taken)
  # It calls a tool's in front there.
  run(address_taken_fronted 2 mpi "LD_PRELOAD=${runtime}$<TARGET_FILE:plan_fortran_tool>:$<TARGET_FILE:thalweg-${family}>;${chain}" address_taken fronted)
endif()
