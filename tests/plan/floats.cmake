# Sums of floating-point numbers, whose bits depend on the order. Included by plan_mpi(), whose run() and settings it uses.
# What a run learns and sets up changes no sum.
set(four_hosts "THALWEG_TOPOLOGY=node:4 core:1;THALWEG_TRANSPORT=mpi")
run(floats_stable 4 ${inside} "${four_hosts}" blocking floats stable)
run(floats_told 4 ${inside} "${four_hosts};THALWEG_RATE=10gbit;THALWEG_LATENCY_US=20" blocking floats stable)
run(floats_early 4 ${inside} "${four_hosts};THALWEG_SETUP=early" blocking floats early)
run(floats_native 4 ${inside} "${four_hosts};THALWEG_FLOAT_ORDER=native;THALWEG_SETUP=early" blocking floats native)
run(floats_free 4 ${inside} "${four_hosts};THALWEG_FLOAT_ORDER=free" blocking floats free)

# In the modes in which the program starts them, whoever adds; natively as a check of the program itself.
run(floats_rounding 3 ${inside_current} "${forced};THALWEG_ALLREDUCE=ring:chunk_bytes=4K" rounding)
run(floats_rounding_ucx 3 ${inside} "${forced};${ucx};THALWEG_TEST_LEVEL=single;THALWEG_ALLREDUCE=recursive_doubling" rounding)
if(name STREQUAL mpich5)
  run(floats_rounding_native 2 ${inside} "THALWEG=off;THALWEG_TEST_EXPECT=native" rounding)
endif()

# Each rank in modes of its own, where a table ends and where calls are tried; natively as a check of the program itself.
set(at_the_border "THALWEG_TOPOLOGY=node:3 core:1" THALWEG_LATENCY_US=12.345601 THALWEG_RATE=1gbit THALWEG_REPORT=/dev/null
    THALWEG_TUNING=${CMAKE_CURRENT_SOURCE_DIR}/bordering.json)
run(modes 3 ${inside_current} "${with_persistent};${at_the_border}" modes)
run(modes_ucx 3 ${inside} "${with_persistent};${at_the_border};${ucx};THALWEG_TEST_LEVEL=single" modes)
if(name STREQUAL mpich5)
  run(modes_native 3 ${inside} "THALWEG=off;THALWEG_TEST_EXPECT=native" modes)
endif()

# delayed(case ranks label settings): whoever comes late, in two launches.
macro(delayed case ranks label settings)
  add_test(NAME plan.${name}.${case}.${ranks}
           COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/delayed_sums.py ${MPI_MPIEXEC} -n ${ranks} env ${preload}
                   THALWEG_SETUP=early ${settings} $<TARGET_FILE:plan_delayed_sums_${name}>)
  set_tests_properties(plan.${name}.${case}.${ranks} PROPERTIES LABELS ${label} TIMEOUT 300 SKIP_RETURN_CODE 77 PROCESSORS 2
                       ENVIRONMENT "${plan_environment}")
endmacro()
delayed(floats_delayed 4 ${inside_current} "${four_hosts}")
delayed(floats_delayed_ucx 4 ${inside} "THALWEG_TOPOLOGY=node:4 core:1;${ucx};THALWEG_TEST_LEVEL=single")
foreach(algorithm recursive_doubling rabenseifner ring:chunk_bytes=4K)
  string(REGEX MATCH "^[a-z_]+" algorithm_name ${algorithm})
  delayed(floats_delayed_${algorithm_name} 5 full "${ucx};THALWEG_TEST_LEVEL=single;THALWEG_ALLREDUCE=${algorithm}")
endforeach()
delayed(floats_delayed_node_leader 4 full "${two_hosts};THALWEG_TEST_LEVEL=single;THALWEG_ALLREDUCE=node_leader")
