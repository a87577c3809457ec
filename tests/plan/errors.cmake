# What is an error, on which communicator it is raised, and what only looks like one. Included by plan_mpi(), whose run() and
# settings it uses.
# Shares that lie between the elements that are received, where a library that counts in sizes would look for aliases.
set(gathered "${forced};THALWEG_ALLGATHER=ring;THALWEG_ALLREDUCE=recursive_doubling")
run(aliased 3 mpi "${gathered}" aliased)
run(aliased_shm 3 ${inside} "${gathered};${shm}" aliased)
run(aliased_native 3 full "${with_persistent};THALWEG_TEST_EXPECT=native;THALWEG=off" aliased)
# A thread that exchanges error handlers beside one whose calls agree.
run(handlers_meanwhile 2 mpi "${gathered};THALWEG_ALLTOALLV=spread" handlers_meanwhile)
run(handlers_meanwhile_ucx 3 ${inside} "${gathered};THALWEG_ALLTOALLV=spread;${ucx}" handlers_meanwhile)
# Errors of persistent operations and of those that do not block, while those of the world and of MPI_COMM_SELF end the job.
# Libraries of the MPICH family tell the world's handler of what they find wrong in messages of ours (docs/hazards.md).
if(name MATCHES "^openmpi")
  run(raised 2 mpi "${with_persistent};${chain}" raised)
endif()
run(raised_ucx 3 ${inside} "${with_persistent};${chain};${ucx};THALWEG_TEST_LEVEL=single" raised)
run(raised_ucx_threads 2 ${inside} "${with_persistent};${chain};${ucx}" raised)
# A handler that jumps, over the memory of the host.
run(jumped_shm 2 ${inside} "${chain};${shm}" jumped)
# Wrong arguments of one rank where the others would agree with it behind every communicator that is made.
run(arguments_alone_early 3 mpi "${asked_for};${ucx};THALWEG_SETUP=early" alone creations)
