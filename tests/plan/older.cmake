# Programs that were built with persistent collectives, under libraries without: Open MPI 4.1, which has them by other names,
# with a program of Open MPI 5's; and MPICH 4.0.2 with their names hidden, as all older ones are. LD_BIND_NOW: whatever is
# lacking ends the program at its start, and not when it is called. Included behind plan_mpi()'s calls.

# older(case ranks label command…): the command stands behind `mpiexec -n ranks env`.
macro(older case ranks label)
  add_test(NAME plan.${older}.${case}.${ranks} COMMAND ${launch} -n ${ranks} env LD_BIND_NOW=1 ${library} ${ARGN})
  set_tests_properties(plan.${older}.${case}.${ranks} PROPERTIES LABELS ${label} TIMEOUT 300 PROCESSORS 2
                       ENVIRONMENT "${environment}")
endmacro()

function(older_library older family include library_built_with library_folder)
  set(environment ${plan_environment})
  if(older STREQUAL older_openmpi)
    list(APPEND environment OMPI_MCA_topo=^treematch OMPI_MCA_hwloc_base_binding_policy=none)
  endif()
  set(launch ${ARGN})
  list(GET launch 0 launcher)
  if(NOT launcher OR NOT EXISTS ${include}/mpi.h OR NOT EXISTS ${library_built_with} OR NOT TARGET thalweg-${family})
    add_test(NAME plan.${older} COMMAND sh -c "echo 'skipped: not installed'; exit 77")
    set_tests_properties(plan.${older} PROPERTIES SKIP_RETURN_CODE 77 LABELS mpi)
    return()
  endif()
  add_executable(plan_${older} programs/older_library.c)
  target_include_directories(plan_${older} SYSTEM BEFORE PRIVATE ${include})
  target_include_directories(plan_${older} PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_compile_options(plan_${older} PRIVATE -Wno-unused-function)
  target_link_libraries(plan_${older} PRIVATE ${library_built_with} ${CMAKE_DL_LIBS} pthread)
  target_link_options(plan_${older} PRIVATE -Wl,--allow-shlib-undefined)
  set_target_properties(plan_${older} PROPERTIES SKIP_BUILD_RPATH ON C_EXTENSIONS ON)

  set(library LD_LIBRARY_PATH=${library_folder})
  set(program $<TARGET_FILE:plan_${older}>)
  set(run THALWEG_HOME=$<TARGET_FILE_DIR:thalweg-${family}> $<TARGET_FILE:thalweg> run)
  set(alone "symbol lookup error.*MPI_[A-Za-z]*_init")
  older(alone 1 mpi ${program})
  set_tests_properties(plan.${older}.alone.1 PROPERTIES PASS_REGULAR_EXPRESSION "${alone}")
  foreach(ranks 1 2 3)
    older(run ${ranks} mpi ${run} ${program} neighbours)
  endforeach()
  # Where nothing of ours can serve a neighbourhood, MPICH has nothing in the place of it.
  set(with neighbours)
  if(older STREQUAL older_mpich)
    set(with no_neighbours)
  endif()
  older(agent_off 3 mpi THALWEG_AGENT=off ${run} ${program} ${with})
  older(single 2 mpi THALWEG_TEST_LEVEL=single ${run} ${program})
  # A table that speaks of neighbours' plans, but not of ones as short: nobody else serves them.
  older(tuned 3 mpi THALWEG_TUNING=${CMAKE_CURRENT_SOURCE_DIR}/planned_neighbours.json ${run} ${program} neighbours)
  older(wrong 3 mpi ${run} ${program} wrong)
  # By plans of ours.
  older(wrong_ours 3 mpi THALWEG_ALLTOALLV=spread THALWEG_BCAST_MIN_BYTES=1 THALWEG_BCAST=chain ${run} ${program} wrong)
  older(ours 3 mpi THALWEG_BCAST_MIN_BYTES=1 THALWEG_BCAST=chain THALWEG_ALLGATHER=ring
        THALWEG_ALLREDUCE=recursive_doubling THALWEG_BARRIER=dissemination THALWEG_ALLTOALLV=spread THALWEG_TEST_TAKEN=1
        ${run} ${program} neighbours)
  if(older STREQUAL older_mpich)
    set(objects $<TARGET_FILE:thalweg-${family}-persistent>:$<TARGET_FILE:thalweg-${family}>)
    older(fails 2 mpi THALWEG=off LD_PRELOAD=${objects} THALWEG_TEST_EXPECT=native ${program} fails)
    if(TARGET plan_faults_mpich4)
      older(freed 2 mpi LD_PRELOAD=${objects}:$<TARGET_FILE:plan_faults_mpich4> ${program} freed)
      older(left 3 mpi LD_PRELOAD=${objects}:$<TARGET_FILE:plan_faults_mpich4> ${program} left)
    endif()
  endif()
endfunction()

older_library(older_openmpi ompi ${venv}-openmpi/include ${venv}-openmpi/lib/libmpi.so.40
              /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE} ${openmpi4_mpiexec} --oversubscribe)
set(hidden ${CMAKE_CURRENT_BINARY_DIR}/without_plans)
if(THALWEG_LIBRARY_MPICH)
  add_custom_command(
    OUTPUT ${hidden}/libmpich.so.12 DEPENDS hide_plans.py
    COMMAND ${CMAKE_COMMAND} -E make_directory ${hidden}
    COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/hide_plans.py ${THALWEG_LIBRARY_MPICH}
            ${hidden}/libmpich.so.12
    VERBATIM)
  add_custom_target(plan_hidden_plans ALL DEPENDS ${hidden}/libmpich.so.12)
endif()
older_library(older_mpich mpich ${THALWEG_INCLUDE_MPICH_DEBIAN} ${THALWEG_LIBRARY_MPICH} ${hidden}
              ${THALWEG_MPIEXEC_MPICH})
