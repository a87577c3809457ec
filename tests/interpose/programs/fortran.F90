! Broadcasts from Fortran with mpif.h or, where USE_MODULE is defined, `use mpi`: contiguous, through MPI_BOTTOM, on
! a split communicator that is freed, and one that is in error. Says how many calls of MPI_Bcast it made.
program fortran
#ifdef USE_MODULE
    use mpi
    implicit none
#else
    implicit none
    include 'mpif.h'
#endif
    integer :: rank, ranks, half, ierr, calls, i, round, wrong, there, class, blocks(1)
    integer, parameter :: n = 20000
    integer :: data(n)
    integer(kind=MPI_ADDRESS_KIND) :: places(1)

    call MPI_INIT(ierr)
    call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
    call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, ierr)
    calls = 0
    wrong = 0
    do round = 1, 10
        data = -1
        if (rank == mod(round, ranks)) data = [(i * 3 + round, i = 1, n)]
        call MPI_BCAST(data, n, MPI_INTEGER, mod(round, ranks), MPI_COMM_WORLD, ierr)
        calls = calls + 1
        do i = 1, n
            if (data(i) /= i * 3 + round) wrong = wrong + 1
        end do
    end do

    call MPI_GET_ADDRESS(data, places(1), ierr)
    blocks(1) = n
    call MPI_TYPE_CREATE_HINDEXED(1, blocks, places, MPI_INTEGER, there, ierr)
    call MPI_TYPE_COMMIT(there, ierr)
    data = -1
    if (rank == 0) data = [(i * 5, i = 1, n)]
    call MPI_BCAST(MPI_BOTTOM, 1, there, 0, MPI_COMM_WORLD, ierr)
    calls = calls + 1
    do i = 1, n
        if (data(i) /= i * 5) wrong = wrong + 1
    end do
    call MPI_TYPE_FREE(there, ierr)

    call MPI_COMM_SPLIT(MPI_COMM_WORLD, mod(rank, 2), -rank, half, ierr)
    data = -1
    call MPI_COMM_RANK(half, i, ierr)
    if (i == 0) data = 17
    call MPI_BCAST(data, n, MPI_INTEGER, 0, half, ierr)
    calls = calls + 1
    if (any(data /= 17)) wrong = wrong + 1
    call MPI_COMM_FREE(half, ierr)
    if (half /= MPI_COMM_NULL) wrong = wrong + 1

    call MPI_COMM_SET_ERRHANDLER(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierr)
    call MPI_BCAST(data, n, MPI_INTEGER, ranks + 3, MPI_COMM_WORLD, ierr)
    calls = calls + 1
    call MPI_ERROR_CLASS(ierr, class, i)
    if (class /= MPI_ERR_ROOT) wrong = wrong + 1

    if (wrong /= 0) print '(A,I0,A,I0)', 'rank ', rank, ' wrong ', wrong
    if (rank == 0 .and. wrong == 0) print '(A,I0,A,I0)', 'done on ', ranks, ' ranks, broadcasts ', calls
    call MPI_FINALIZE(ierr)
    if (wrong /= 0) stop 1
end program
