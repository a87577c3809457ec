! Broadcasts and checks every element, through `use mpi`: several sizes, every root, a strided datatype on the
! receiving side, and a communicator split in two. Buffers are poisoned before every call. Exits with 1 on a wrong
! element.
program bcast_use_mpi
    use mpi
    use bcast_checks
    implicit none
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
    call tell(rank, ranks, total)
    call MPI_Finalize(ierr)
    if (total /= 0) stop 1

contains

    subroutine every_root(comm)
        integer, intent(in) :: comm
        integer, allocatable :: buf(:)
        integer :: me, members, root, s, seed, error

        allocate (buf(0:maxn))
        call MPI_Comm_rank(comm, me, error)
        call MPI_Comm_size(comm, members, error)
        seed = 0
        do s = 1, size(sizes)
            do root = 0, members - 1
                seed = seed + 1
                call prepare(buf, sizes(s), seed, me == root)
                call MPI_Bcast(buf, sizes(s), MPI_INTEGER, root, comm, error)
                if (error /= MPI_SUCCESS) wrong = wrong + 1
                wrong = wrong + wrong_elements(buf, sizes(s), seed)
            end do
        end do
    end subroutine every_root

    subroutine strided(comm)
        integer, intent(in) :: comm
        integer, allocatable :: buf(:)
        integer :: vector
        integer :: me, members, error

        allocate (buf(0:stride*blocks - 1))
        call MPI_Comm_rank(comm, me, error)
        call MPI_Comm_size(comm, members, error)
        call MPI_Type_vector(blocks, 1, stride, MPI_INTEGER, vector, error)
        call MPI_Type_commit(vector, error)
        call prepare_strided(buf, me == members - 1)
        if (me == members - 1) then
            call MPI_Bcast(buf, blocks, MPI_INTEGER, members - 1, comm, error)
        else
            call MPI_Bcast(buf, 1, vector, members - 1, comm, error)
            wrong = wrong + wrong_strided_elements(buf)
        end if
        call MPI_Type_free(vector, error)
    end subroutine strided

end program bcast_use_mpi
