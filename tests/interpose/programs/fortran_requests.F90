! Nonblocking collectives from Fortran with mpif.h, `use mpi` (USE_MODULE) or `use mpi_f08` (USE_F08), completed by every
! call that completes. A receive that nobody matches keeps MPI_WAITANY and its like from returning at once. With USE_LARGE
! as well, counts are of MPI_COUNT_KIND.
program fortran_requests
#if defined(USE_F08)
    use mpi_f08
    implicit none
    type(MPI_Request) :: requests(4)
    type(MPI_Status) :: states(4)
#define STATE(i) states(i)
    integer, parameter :: lowest_index = 0
#elif defined(USE_MODULE)
    use mpi
    implicit none
    integer :: requests(4), states(MPI_STATUS_SIZE, 4)
#define STATE(i) states(:, i)
    integer, parameter :: lowest_index = 1
#else
    implicit none
    include 'mpif.h'
    integer :: requests(4), states(MPI_STATUS_SIZE, 4)
#define STATE(i) states(:, i)
    integer, parameter :: lowest_index = 1
#endif
    integer, parameter :: n = 20000
#if defined(USE_LARGE)
    integer, parameter :: counted = MPI_COUNT_KIND, placed = MPI_ADDRESS_KIND
#else
    integer, parameter :: counted = selected_int_kind(9), placed = counted
#endif
    integer(kind=counted), parameter :: none = 0, one = 1, hundred = 100, whole = n
    integer :: data(n, 3), all(100, 64), own(100), total(100)
    integer :: rank, ranks, provided, ierr, round, i, k, wrong, done, some, index, indices(4), unmatched
    logical :: flag

    call MPI_INIT_THREAD(MPI_THREAD_MULTIPLE, provided, ierr)
    call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
    call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, ierr)
    wrong = 0
    call MPI_IBCAST(data, one, MPI_INTEGER, 0, MPI_COMM_WORLD, requests(1), ierr)
    call MPI_WAIT(requests(1), MPI_STATUS_IGNORE, ierr)
    call MPI_BARRIER(MPI_COMM_WORLD, ierr)
    call ignore_many
    do round = 1, 18
        data = -1
        if (mod(round, 9) == 1 .and. rank == 0) call come_late
        do k = 1, 3
            if (rank == mod(k, ranks)) data(:, k) = [(i * k + round, i = 1, n)]
            call MPI_IBCAST(data(:, k), whole, MPI_INTEGER, mod(k, ranks), MPI_COMM_WORLD, requests(k), ierr)
        end do
        call MPI_IRECV(unmatched, 1, MPI_INTEGER, rank, 77, MPI_COMM_WORLD, requests(4), ierr)
        done = 0
        select case (mod(round, 9))
        case (0)
            do k = 3, 1, -1
                call MPI_WAIT(requests(k), STATE(k), ierr)
            end do
        case (1)
            ! What is there long before the broadcasts keeps its status until they are.
            call MPI_SEND(round, 1, MPI_INTEGER, rank, 77, MPI_COMM_WORLD, ierr)
            if (round == 1) then
                call MPI_WAITALL(4, requests, states, ierr)
                call MPI_GET_COUNT(STATE(4), MPI_INTEGER, some, ierr)
                if (some /= 1) wrong = wrong + 1
            else
                call MPI_WAITALL(4, requests, MPI_STATUSES_IGNORE, ierr)
            end if
            if (requests(4) /= MPI_REQUEST_NULL .or. unmatched /= round) wrong = wrong + 1
            call MPI_IRECV(unmatched, 1, MPI_INTEGER, rank, 77, MPI_COMM_WORLD, requests(4), ierr)
        case (2)
            do k = 1, 3
                call MPI_WAITANY(4, requests, index, MPI_STATUS_IGNORE, ierr)
                ! MPICH 4.0's own mpi_f08 form counts from 0.
                if (index < lowest_index .or. index > 3) wrong = wrong + 1
            end do
        case (3)
            do while (done < 3)
                call MPI_WAITSOME(4, requests, some, indices, states, ierr)
                if (some < 1) wrong = wrong + 1
                done = done + some
            end do
        case (4)
            do k = 1, 3
                flag = .false.
                do while (.not. flag)
                    call MPI_TEST(requests(k), flag, MPI_STATUS_IGNORE, ierr)
                end do
            end do
        case (5)
            flag = .false.
            do while (.not. flag)
                call MPI_TESTALL(3, requests, flag, MPI_STATUSES_IGNORE, ierr)
            end do
        case (6)
            do while (done < 3)
                call MPI_TESTANY(4, requests, index, flag, STATE(1), ierr)
                if (flag) done = done + 1
            end do
        case (7)
            do while (done < 3)
                call MPI_TESTSOME(4, requests, some, indices, MPI_STATUSES_IGNORE, ierr)
                done = done + some
            end do
        case (8)
            do k = 1, 3
                ! A status, because without one Open MPI 4.1 always says .false.
                flag = .false.
                do while (.not. flag)
                    call MPI_REQUEST_GET_STATUS(requests(k), flag, STATE(k), ierr)
                end do
                call MPI_WAIT(requests(k), MPI_STATUS_IGNORE, ierr)
            end do
        end select
        do k = 1, 3
            if (requests(k) /= MPI_REQUEST_NULL) wrong = wrong + 1
            do i = 1, n
                if (data(i, k) /= i * k + round) wrong = wrong + 1
            end do
        end do
        call MPI_SEND(round, 1, MPI_INTEGER, rank, 77, MPI_COMM_WORLD, ierr)
        call MPI_WAIT(requests(4), MPI_STATUS_IGNORE, ierr)
        if (unmatched /= round) wrong = wrong + 1

        own = rank + round
        all = -1
        call MPI_IALLGATHER(own, hundred, MPI_INTEGER, all, hundred, MPI_INTEGER, MPI_COMM_WORLD, requests(1), ierr)
        call MPI_WAIT(requests(1), MPI_STATUS_IGNORE, ierr)
        do k = 1, ranks
            if (any(all(:, k) /= k - 1 + round)) wrong = wrong + 1
        end do
        all(:, rank + 1) = 3 * rank
        call MPI_IALLGATHER(MPI_IN_PLACE, none, MPI_INTEGER, all, hundred, MPI_INTEGER, MPI_COMM_WORLD, requests(1), ierr)
        total = rank
        call MPI_IALLREDUCE(MPI_IN_PLACE, total, hundred, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(2), ierr)
        call MPI_IBARRIER(MPI_COMM_WORLD, requests(3), ierr)
        call MPI_WAITALL(3, requests, MPI_STATUSES_IGNORE, ierr)
        do k = 1, ranks
            if (any(all(:, k) /= 3 * (k - 1))) wrong = wrong + 1
        end do
        if (any(total /= ranks * (ranks - 1) / 2)) wrong = wrong + 1

        ! The blocking forms.
        all = -1
        call MPI_ALLGATHER(own, hundred, MPI_INTEGER, all, hundred, MPI_INTEGER, MPI_COMM_WORLD, ierr)
        do k = 1, ranks
            if (any(all(:, k) /= k - 1 + round)) wrong = wrong + 1
        end do
        all = -1
        all(:, rank + 1) = 5 * rank
        call MPI_ALLGATHERV(MPI_IN_PLACE, none, MPI_INTEGER, all, [(hundred, k = 1, ranks)], &
                            [(int(100 * (k - 1), placed), k = 1, ranks)], MPI_INTEGER, MPI_COMM_WORLD, ierr)
        do k = 1, ranks
            if (any(all(:, k) /= 5 * (k - 1))) wrong = wrong + 1
        end do
        total = rank + 1
        call MPI_ALLREDUCE(MPI_IN_PLACE, total, hundred, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
        if (any(total /= ranks * (ranks + 1) / 2)) wrong = wrong + 1
    end do
    if (wrong /= 0) print '(A,I0,A,I0)', 'rank ', rank, ' wrong ', wrong
    if (rank == 0 .and. wrong == 0) print '(A,I0,A)', 'done on ', ranks, ' ranks'
    call MPI_FINALIZE(ierr)
    if (wrong /= 0) stop 1

contains

    ! Statuses that nobody wants are written nowhere, however many requests end before one of ours.
    subroutine ignore_many
        integer, parameter :: many = 40
#if defined(USE_F08)
        type(MPI_Request) :: waited(many)
#else
        integer :: waited(many)
#endif
        integer, save :: before(200) = 4711, got(many), after(200) = 4711

        if (rank == 0) call come_late
        do i = 1, many - 1
            call MPI_IRECV(got(i), 1, MPI_INTEGER, rank, 78, MPI_COMM_WORLD, waited(i), ierr)
        end do
        do i = 1, many - 1
            call MPI_SEND(i, 1, MPI_INTEGER, rank, 78, MPI_COMM_WORLD, ierr)
        end do
        got(many) = rank
        call MPI_IBCAST(got(many), one, MPI_INTEGER, 0, MPI_COMM_WORLD, waited(many), ierr)
        call MPI_WAITALL(many, waited, MPI_STATUSES_IGNORE, ierr)
        if (ierr /= MPI_SUCCESS .or. any(before /= 4711) .or. any(after /= 4711)) wrong = wrong + 1
        if (any(got(:many - 1) /= [(i, i = 1, many - 1)]) .or. got(many) /= 0) wrong = wrong + 1
        do i = 1, many
            if (waited(i) /= MPI_REQUEST_NULL) wrong = wrong + 1
        end do
    end subroutine

    ! By more than MPI_WAITALL waits for operations of ours before it looks at others.
    subroutine come_late
        integer(kind=selected_int_kind(18)) :: began, now, per_second

        call system_clock(began, per_second)
        now = began
        do while (now - began < per_second * 30 / 1000)
            call system_clock(now)
        end do
    end subroutine
end program
