! A communicator of a session from Fortran with mpif.h, `use mpi` (USE_MODULE) or `use mpi_f08` (USE_F08). Its making is told a
! text, whose length compilers pass behind all other arguments.
program fortran_sessions
#if defined(USE_F08)
    use mpi_f08
    implicit none
    type(MPI_Session) :: session
    type(MPI_Group) :: group
    type(MPI_Comm) :: comm
#elif defined(USE_MODULE)
    use mpi
    implicit none
    integer :: session, group, comm
#else
    implicit none
    include 'mpif.h'
    integer :: session, group, comm
#endif
    character(len=40) :: longer = "fortran-sessions and what is no text"
    integer :: rank, ranks, sum, ierror

    call MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, session, ierror)
    if (ierror /= MPI_SUCCESS) stop 2
    call MPI_Group_from_session_pset(session, "mpi://WORLD", group, ierror)
    if (ierror /= MPI_SUCCESS) stop 3
    call MPI_Comm_create_from_group(group, longer(1:16), MPI_INFO_NULL, MPI_ERRORS_RETURN, comm, ierror)
    if (ierror /= MPI_SUCCESS) stop 4
    call MPI_Group_free(group, ierror)
    call MPI_Comm_rank(comm, rank, ierror)
    call MPI_Comm_size(comm, ranks, ierror)
    call MPI_Allreduce(rank, sum, 1, MPI_INTEGER, MPI_SUM, comm, ierror)
    if (sum /= ranks * (ranks - 1) / 2) stop 5
    if (rank == 0) print '(a,i0,a)', "a communicator of ", ranks, " ranks"
    call MPI_Comm_free(comm, ierror)
    call MPI_Session_finalize(session, ierror)
end program
