! Broadcasts and checks every element, through `use mpi`: several sizes, every root, a strided datatype on the
! receiving side, and a communicator split in two. Buffers are poisoned before every call. Exits with 1 on a wrong
! element.
program bcast_use_mpi
    use mpi
    implicit none
    integer, parameter :: maxn = 300000, poison = -77
    integer, parameter :: sizes(6) = [0, 1, 7, 1000, 32768, 262144]
    integer :: rank, ranks, wrong, total, ierr
    integer :: half

    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
    wrong = 0
    call every_root(MPI_COMM_WORLD)
    call strided(MPI_COMM_WORLD)
    call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), -rank, half, ierr)
    call every_root(half)
    call MPI_Comm_free(half, ierr)

    call MPI_Allreduce(wrong, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    if (rank == 0) then
        if (total == 0) then
            print '(A,I0,A)', '# ', ranks, ' ranks: every byte correct'
        else
            print '(A,I0,A)', '# ', total, ' WRONG elements'
        end if
    end if
    call MPI_Finalize(ierr)
    if (total /= 0) stop 1

contains

    subroutine every_root(comm)
        integer, intent(in) :: comm
        integer, allocatable :: buf(:)
        integer :: me, members, root, n, s, i, seed, error

        allocate (buf(0:maxn))
        call MPI_Comm_rank(comm, me, error)
        call MPI_Comm_size(comm, members, error)
        seed = 0
        do s = 1, size(sizes)
            n = sizes(s)
            do root = 0, members - 1
                seed = seed + 1
                buf = poison
                if (me == root) buf(0:n - 1) = [(seed*1000003 + i, i=0, n - 1)]
                call MPI_Bcast(buf, n, MPI_INTEGER, root, comm, error)
                if (error /= MPI_SUCCESS) wrong = wrong + 1
                wrong = wrong + count(buf(0:n - 1) /= [(seed*1000003 + i, i=0, n - 1)])
                wrong = wrong + count(buf(n:) /= poison)
            end do
        end do
    end subroutine every_root

    ! The root sends plain integers; the others take every third.
    subroutine strided(comm)
        integer, intent(in) :: comm
        integer, parameter :: blocks = 50000
        integer, allocatable :: buf(:)
        integer :: vector
        integer :: me, members, i, error

        allocate (buf(0:3*blocks - 1))
        call MPI_Comm_rank(comm, me, error)
        call MPI_Comm_size(comm, members, error)
        call MPI_Type_vector(blocks, 1, 3, MPI_INTEGER, vector, error)
        call MPI_Type_commit(vector, error)
        buf = poison
        if (me == members - 1) then
            buf(0:blocks - 1) = [(i + 5, i=0, blocks - 1)]
            call MPI_Bcast(buf, blocks, MPI_INTEGER, members - 1, comm, error)
        else
            call MPI_Bcast(buf, 1, vector, members - 1, comm, error)
            wrong = wrong + count(buf(0::3) /= [(i + 5, i=0, blocks - 1)])
            wrong = wrong + count(buf(1::3) /= poison) + count(buf(2::3) /= poison)
        end if
        call MPI_Type_free(vector, error)
    end subroutine strided

end program bcast_use_mpi
