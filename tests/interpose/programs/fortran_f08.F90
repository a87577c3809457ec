! The same through `use mpi_f08`, with and without the optional ierror. A strided section where the compiler and the
! library pass descriptors. Where USE_LARGE is defined, counts are of MPI_COUNT_KIND, which is another procedure of the
! library.
program fortran_f08
    use mpi_f08
    implicit none
    integer :: rank, ranks, ierr, calls, i, round, wrong, class
    integer, parameter :: n = 20000
#if defined(USE_LARGE)
    integer, parameter :: counted = MPI_COUNT_KIND
#else
    integer, parameter :: counted = selected_int_kind(9)
#endif
    integer(kind=counted), parameter :: whole = n, one = 1
    integer :: data(n)
    type(MPI_Comm) :: half
    type(MPI_Datatype) :: there
    integer(kind=MPI_ADDRESS_KIND) :: places(1)

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    calls = 0
    wrong = 0
    do round = 1, 10
        data = -1
        if (rank == mod(round, ranks)) data = [(i * 3 + round, i = 1, n)]
        if (mod(round, 2) == 0) then
            call MPI_Bcast(data, whole, MPI_INTEGER, mod(round, ranks), MPI_COMM_WORLD)
        else
            call MPI_Bcast(data, whole, MPI_INTEGER, mod(round, ranks), MPI_COMM_WORLD, ierr)
        end if
        calls = calls + 1
        do i = 1, n
            if (data(i) /= i * 3 + round) wrong = wrong + 1
        end do
    end do

    call MPI_Get_address(data, places(1))
    call MPI_Type_create_hindexed(1, [n], places, MPI_INTEGER, there)
    call MPI_Type_commit(there)
    data = -1
    if (rank == 0) data = [(i * 5, i = 1, n)]
    call MPI_Bcast(MPI_BOTTOM, one, there, 0, MPI_COMM_WORLD)
    calls = calls + 1
    do i = 1, n
        if (data(i) /= i * 5) wrong = wrong + 1
    end do
    call MPI_Type_free(there)

    if (MPI_SUBARRAYS_SUPPORTED) then
        data = -1
        if (rank == 0) data(2:n:2) = 23
        call MPI_Bcast(data(2:n:2), whole / 2, MPI_INTEGER, 0, MPI_COMM_WORLD)
        calls = calls + 1
        if (any(data(2:n:2) /= 23) .or. any(data(1:n:2) /= -1)) wrong = wrong + 1
    end if

    call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), -rank, half)
    data = -1
    call MPI_Comm_rank(half, i)
    if (i == 0) data = 17
    call MPI_Bcast(data, whole, MPI_INTEGER, 0, half)
    calls = calls + 1
    if (any(data /= 17)) wrong = wrong + 1
    call MPI_Comm_free(half)

    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
    call MPI_Bcast(data, whole, MPI_INTEGER, ranks + 3, MPI_COMM_WORLD, ierr)
    calls = calls + 1
    call MPI_Error_class(ierr, class)
    if (class /= MPI_ERR_ROOT) wrong = wrong + 1

    if (wrong /= 0) print '(A,I0,A,I0)', 'rank ', rank, ' wrong ', wrong
    if (rank == 0 .and. wrong == 0) print '(A,I0,A,I0)', 'done on ', ranks, ' ranks, broadcasts ', calls
    call MPI_Finalize()
    if (wrong /= 0) stop 1
end program
