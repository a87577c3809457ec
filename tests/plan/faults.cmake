# Calls of the MPI library that fail, on one rank, while communicators are set up and the network is measured. Included by
# plan_mpi(), whose run() and settings it uses.
set(faults ${with_persistent}:$<TARGET_FILE:plan_faults_${name}>)
set(setting_up "THALWEG_TOPOLOGY=node:3 core:1" ${all} THALWEG_BCAST=chain:chunk_bytes=64K THALWEG_ALLGATHER=ring ${ucx})
set(share all)
set(label full)
if(name STREQUAL mpich5)
  set(share some)
  set(label mpi)
endif()
add_test(NAME plan.${name}.agreement
         COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/agreement.py ${share} ${MPI_MPIEXEC} -n 3 env
                 ${faults} ${setting_up} $<TARGET_FILE:plan_agreement_${name}>)
add_test(NAME plan.${name}.agreement_split
         COMMAND ${MPI_MPIEXEC} -n 3 env ${faults} ${setting_up} THALWEG_SETUP=early THALWEG_TEST_FAULT=Comm_split:1:1
                 $<TARGET_FILE:plan_agreement_${name}> split)
add_test(NAME plan.${name}.agreement_group
         COMMAND ${MPI_MPIEXEC} -n 3 env ${faults} ${setting_up} THALWEG_SETUP=early $<TARGET_FILE:plan_agreement_${name}> group)
add_test(NAME plan.${name}.agreement_outside
         COMMAND ${MPI_MPIEXEC} -n 3 env ${faults} ${setting_up} THALWEG_SETUP=early $<TARGET_FILE:plan_agreement_${name}> outside)
# The same, with an error handler that jumps.
add_test(NAME plan.${name}.agreement_caught
         COMMAND ${MPI_MPIEXEC} -n 3 env ${faults} ${setting_up} THALWEG_SETUP=early $<TARGET_FILE:plan_caught_${name}>)
add_test(NAME plan.${name}.agreement_request
         COMMAND ${MPI_MPIEXEC} -n 3 env ${faults} ${setting_up} $<TARGET_FILE:plan_agreement_${name}> request)
set_tests_properties(plan.${name}.agreement plan.${name}.agreement_split plan.${name}.agreement_group
                     plan.${name}.agreement_outside plan.${name}.agreement_caught plan.${name}.agreement_request
                     PROPERTIES LABELS ${label} TIMEOUT 300 PROCESSORS 2 ENVIRONMENT "${plan_environment}")
set_tests_properties(plan.${name}.agreement_request PROPERTIES SKIP_RETURN_CODE 77)  # without plans
if(name STREQUAL mpich5)
  add_test(NAME plan.${name}.agreement_all
           COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/agreement.py all ${MPI_MPIEXEC} -n 3 env
                   ${faults} ${setting_up} $<TARGET_FILE:plan_agreement_${name}>)
  set_tests_properties(plan.${name}.agreement_all PROPERTIES LABELS full TIMEOUT 300 PROCESSORS 2
                       ENVIRONMENT "${plan_environment}")
endif()
run(located 3 ${label} "${faults};${setting_up}" located)
# An end of the measurement of the network that fails, falls silent or is late.
foreach(share usual late)
  set(test plan.${name}.calibration_${share})
  add_test(NAME ${test}
           COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/calibration.py ${share} ${MPI_MPIEXEC} -n 3 env
                   ${faults} ${setting_up} $<TARGET_FILE:plan_agreement_${name}>)
  set_tests_properties(${test} PROPERTIES LABELS full TIMEOUT 600 PROCESSORS 2 ENVIRONMENT "${plan_environment}")
endforeach()
if(name MATCHES "^(mpich5|openmpi5)$")
  set_tests_properties(plan.${name}.calibration_usual PROPERTIES LABELS mpi TIMEOUT 300)
endif()
