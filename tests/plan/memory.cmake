# Memory that one rank lacks, and memory that the process keeps. Included by plan_mpi(), whose run() and settings it uses.
# UCX would put an mmap of its own in front of the test's.
set(hooked ${all} UCX_MEM_MMAP_HOOK_MODE=none)
# Not under MPICH, whose waits never give way: ranks that share cores take ten times as long there.
set(yielding full)
if(name MATCHES "^openmpi5$|^impi$")
  set(yielding mpi)
endif()
run(no_memory 3 ${yielding} "${hooked};THALWEG_BCAST=chain:chunk_bytes=4K" no_memory)
foreach(at 0 1 9 40)
  run(no_memory_in_init_${at} 2 mpi "${hooked};THALWEG_BCAST=linear" no_memory init ${at})
endforeach()
run(refused_thread 3 mpi "${chain};THALWEG_TRANSPORT=mpi" refused_thread)
run(no_memory_large 5 ${yielding} "${hooked};THALWEG_BCAST=linear" no_memory large)
run(no_memory_staged 2 mpi "${hooked};THALWEG_ALLGATHER=ring" no_memory staged)
run(no_memory_plans 3 ${yielding} "${with_persistent};${hooked};${ucx};THALWEG_ALLTOALLV=spread" no_memory plans)
if(name MATCHES "^(mpich4|impi|openmpi4)$")  # the libraries with Fortran
  run(no_memory_types 3 mpi "${hooked};${ucx};THALWEG_ALLTOALLV=spread" no_memory_types)
endif()
run(kept 2 mpi "${chain};THALWEG_PLAN_MEMORY=4M" kept 0 20)
run(kept_reductions 2 mpi
    "${chain};THALWEG_PLAN_MEMORY=4M;THALWEG_SETUP=early;THALWEG_ALLREDUCE=recursive_doubling" kept 0 64 reductions)
run(kept_all 2 mpi "${chain};THALWEG_PLAN_MEMORY=1G" kept 36 1000)
# On pretended hosts, because on one that is left alone no broadcast is looked at.
run(churn 2 mpi "${all};THALWEG_TOPOLOGY=node:2 core:1" churn 120 1 2)
run(churn_full 2 full "${all};THALWEG_TOPOLOGY=node:2 core:1" churn 100000 1 2)
run(churn_timed 2 full "THALWEG_TOPOLOGY=node:2 core:1" churn 10000 1 2 51)
# What is small there, and does not block: no set-up is paid for. Links that no table speaks of, however busy the machine is.
set(short_lived "THALWEG_TOPOLOGY=node:2 core:1;${ucx};THALWEG_TEST_LEVEL=single;THALWEG_RATE=10gbit;THALWEG_LATENCY_US=20")
run(short_lived 2 ${inside_current} "${short_lived}" short_lived 20)
run(short_lived_plans 2 ${inside_current} "${with_persistent};${short_lived}" short_lived 20)
# Nor on ranks of one host among several.
run(inside_hosts 4 ${inside_current} "${with_persistent};${short_lived};THALWEG_TOPOLOGY=node:2 core:2" inside_hosts)
run(short_lived_timed 2 full "${short_lived}" short_lived 10000 51)
run_alone(plan.${name}.churn_timed.2 plan.${name}.short_lived_timed.2)
