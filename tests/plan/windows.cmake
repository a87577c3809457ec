# Persistent alltoalls over windows. Included by plan_mpi() behind exchanges.cmake, whose run_killed() it uses.
# For one library, the others in the full run. With one thread the two-sided plans beyond the windows need libucp.
macro(run_windows way case ranks label settings)
  set(test plan.${name}.windows_${case}.${ranks})
  add_test(NAME ${test} COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/report.py
                                ${CMAKE_CURRENT_BINARY_DIR} windows ${MPI_MPIEXEC} -n ${ranks} env
                                ${with_persistent} THALWEG_ALLTOALLV=${way} ${settings}
                                $<TARGET_FILE:plan_windows_${name}> ${ARGN})
  set(limit 300)
  if("${label}" STREQUAL "full")
    set(limit 3600)
  endif()
  set_tests_properties(${test} PROPERTIES LABELS ${label} TIMEOUT ${limit} SKIP_RETURN_CODE 77 PROCESSORS 2
                       ENVIRONMENT "${plan_environment}")
endmacro()
if(name STREQUAL mpich4)
  # This one would put beside them, so plans send messages.
  set(none "THALWEG_TEST_WINDOWS=none")
  run_windows(rma_fence fence_messages 2 mpi "${none}" conforms)
  run_windows(rma_get get_messages 3 full "${none};${ucx};THALWEG_TEST_LEVEL=single" conforms crowd)
  return()
endif()
# Under the library whose fences are the shortest where ranks share cores.
set(windows full)
if(name STREQUAL impi)
  set(windows mpi)
endif()
run_windows(rma_get get_single 2 ${inside} "${ucx};THALWEG_TEST_LEVEL=single")
run_windows(rma_fence fence 2 ${windows} "")
run_windows(rma_lock lock 2 ${windows} "")
run_windows(rma_pscw pscw 3 ${windows} "" conforms)
run_windows(rma_get get 2 ${windows} "" conforms)
# Nothing is set up, and no memory is taken, between a start and its completion.
foreach(way fence pscw get)
  run(steady_${way} 3 ${windows} "${steady};THALWEG_ALLTOALLV=rma_${way}" steady)
endforeach()
run(steady_lock 3 ${windows} "${steady};THALWEG_ALLTOALLV=rma_lock" steady barriers)
# A rank is killed in the middle of an epoch.
foreach(way fence lock pscw get)
  run_killed(rma_${way} in_${way} ${windows} "")
endforeach()
# Where the progress thread's gets or puts come to nothing, or its epochs never end, plans send messages.
if(name STREQUAL mpich5)
  set(unadvanced "${with_persistent}:$<TARGET_FILE:plan_faults_${name}>")
  run_windows(rma_get get_unadvanced 2 full "${unadvanced};THALWEG_TEST_FAULT=Rget" conforms)
  run_windows(rma_pscw pscw_unadvanced 2 full "${unadvanced};THALWEG_TEST_FAULT=Put" conforms)
  run_windows(rma_pscw pscw_unending 2 full "${unadvanced};THALWEG_TEST_FAULT=Win_test" conforms)
endif()
# Nor are there any where the library makes none.
foreach(way fence get)
  run_windows(rma_${way} ${way}_refused 2 ${inside}
              "${with_persistent}:$<TARGET_FILE:plan_faults_${name}>;THALWEG_TEST_FAULT=Win_create" conforms)
endforeach()
# Calls of the library fail on one rank alone while a plan is made: nobody has a window then.
foreach(way fence lock)
  run(windows_alone_${way} 3 ${windows} "${faults};THALWEG_ALLTOALLV=rma_${way}" windows_alone)
endforeach()
run(windows_alone_get 3 ${windows} "${faults};THALWEG_ALLTOALLV=rma_get;${ucx};THALWEG_TEST_LEVEL=single" windows_alone)
# Where that is the agreement on them, the job ends with the error.
foreach(call 3 4 5)
  run(windows_disagree_${call} 3 ${windows} "${faults};THALWEG_ALLTOALLV=rma_fence" windows_alone ${call})
  set_tests_properties(plan.${name}.windows_disagree_${call}.3
                       PROPERTIES TIMEOUT 60 PASS_REGULAR_EXPRESSION "MPI failed on this rank alone")
endforeach()
# Plans that outlive the communicators that they were made on.
run(windows_left_fence 3 ${windows} "${faults};THALWEG_ALLTOALLV=rma_fence" windows_left)
run(windows_left_get 3 ${windows} "${faults};THALWEG_ALLTOALLV=rma_get;${ucx};THALWEG_TEST_LEVEL=single" windows_left)
# What two threads have made at once, MPI_Finalize closes in one order on all ranks.
foreach(way fence get)
  run(windows_crosswise_${way} 2 ${inside} "${faults};THALWEG_ALLTOALLV=rma_${way}" windows_crosswise)
endforeach()
foreach(ranks 3 5)
  run_windows(rma_fence fence ${ranks} full "" crowd)
  run_windows(rma_lock lock ${ranks} full "" crowd)
  run_windows(rma_get get ${ranks} full "" conforms crowd)
  run_windows(rma_pscw pscw_single ${ranks} full "${ucx};THALWEG_TEST_LEVEL=single")
endforeach()
# A thousand starts of one plan.
foreach(way fence lock)
  run_windows(rma_${way} ${way}_starts 3 full "" 1000)
endforeach()
foreach(way pscw get)
  run_windows(rma_${way} ${way}_starts 3 full "" conforms 1000)
endforeach()
