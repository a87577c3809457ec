! Alltoalls and their like from Fortran with mpif.h, `use mpi` (USE_MODULE) or `use mpi_f08` (USE_F08): blocking,
! nonblocking and persistent, in place as well, and plans of the other collectives. Where THALWEG_TEST_TAKEN is set the
! arrays of counts, places and types are overwritten as soon as a call has returned, and plans are made (NO_PLANS: the
! library has none); those of old libraries are not ours to judge. With USE_LARGE as well, counts are of
! MPI_COUNT_KIND. At least three ranks, at most eight.
program fortran_plans
#if defined(USE_F08)
    use mpi_f08
    implicit none
    type(MPI_Request) :: request, plans(3)
    type(MPI_Datatype) :: pair, sent_types(8), received_types(8)
#elif defined(USE_MODULE)
    use mpi
    implicit none
    integer :: request, plans(3), pair, sent_types(8), received_types(8)
#else
    implicit none
    include 'mpif.h'
    integer :: request, plans(3), pair, sent_types(8), received_types(8)
#endif
    integer, parameter :: n = 1500, untouched = -7, kinds = 7
#if defined(USE_LARGE)
    integer, parameter :: counted = MPI_COUNT_KIND, placed = MPI_ADDRESS_KIND
#else
    integer, parameter :: counted = selected_int_kind(9), placed = counted
#endif
    integer(kind=counted), parameter :: none = 0, whole = n
    integer :: own(n, 8), got(n, 8), sums(n), message(n)
    integer(kind=counted) :: counts(8), own_counts(8), mine
    integer(kind=placed) :: places(8), own_places(8)
    integer :: rank, ranks, provided, ierr, round, form, kind, wrong, k, start, in, length
    logical :: ours, flag
    character(len=8) :: text

    call MPI_INIT_THREAD(MPI_THREAD_MULTIPLE, provided, ierr)
    call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, ierr)
    call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
    call get_environment_variable('THALWEG_TEST_TAKEN', text, length)
    ours = length > 0
    call MPI_TYPE_CONTIGUOUS(2, MPI_INTEGER, pair, ierr)
    call MPI_TYPE_COMMIT(pair, ierr)
    wrong = 0
    do round = 1, 2
        do form = 1, 2
            do kind = 1, kinds
#if defined(NO_PLANS)
                ! Open MPI 4.1.4 lets go of the types of Fortran's MPI_IALLTOALLW before it has used them, and crashes.
                if (form == 2 .and. (kind == 3 .or. kind == 7) .and. .not. ours) cycle
#endif
                call prepare()
                call post()
                if (ours) call overwrite()
                if (form == 2) call MPI_WAIT(request, MPI_STATUS_IGNORE, ierr)
                call examine()
            end do
        end do
#if !defined(NO_PLANS)
        if (ours) then
            form = 3
            do kind = 1, kinds
                call prepare()
                call post()
                call overwrite()
                ! One that is not active is complete, and stays.
                call MPI_WAIT(request, MPI_STATUS_IGNORE, ierr)
                call MPI_TEST(request, flag, MPI_STATUS_IGNORE, ierr)
                if (.not. flag .or. request == MPI_REQUEST_NULL) wrong = wrong + 1
                do start = 1, 3
                    call prepare()
                    call run_once()
                    call examine()
                end do
                call MPI_REQUEST_FREE(request, ierr)
                if (request /= MPI_REQUEST_NULL) wrong = wrong + 1
            end do
            call other_plans()
        end if
#endif
    end do
    call MPI_TYPE_FREE(pair, ierr)
    if (wrong /= 0) print '(A,I0,A,I0)', 'rank ', rank, ' wrong ', wrong
    if (rank == 0 .and. wrong == 0) print '(A,I0,A)', 'done on ', ranks, ' ranks'
    call MPI_FINALIZE(ierr)
    if (wrong /= 0) stop 1

contains

    integer function value_of(from, to)
        integer, intent(in) :: from, to
        value_of = from * 100000 + to * 10000 + round * 100 + form * 10 + kind
    end function

    ! Pairs of integers that rank `from` has for rank `to`, where they differ; the same both ways, as in place demands.
    integer function ragged(from, to)
        integer, intent(in) :: from, to
        ragged = 2 * (n / 2 - 3 * (from + to))
        if (from + to == 1) ragged = 0
    end function

    ! What goes to rank k - 1 is column k; in place it lies where the answer will.
    subroutine prepare()
        got = untouched
        do k = 1, ranks
            own(:, k) = value_of(rank, k - 1)
            counts(k) = ragged(k - 1, rank)
            places(k) = (k - 1) * n
            if (kind == 5) got(:, k) = value_of(rank, k - 1)
            if (kind >= 6) got(:counts(k), k) = value_of(rank, k - 1)
        end do
        own_counts = counts
        own_places = places
        if (kind == 3) own_counts = counts / 2  ! pairs leave, integers arrive
        if (kind == 3 .or. kind == 7) then
            own_places = 4 * own_places
            places = 4 * places
        end if
        if (kind == 4) then  ! what is gathered has the sizes of rank 0's row
            do k = 1, ranks
                counts(k) = ragged(k - 1, 0)
            end do
            own(:, 1) = value_of(rank, 0)
            mine = ragged(rank, 0)
        end if
        sent_types = pair
        received_types = MPI_INTEGER
    end subroutine

    subroutine overwrite()
        own_counts = 999999
        own_places = -1
        counts = 999999
        places = -1
        sent_types = MPI_DATATYPE_NULL
        received_types = MPI_DATATYPE_NULL
    end subroutine

    subroutine post()
        select case (10 * form + kind)
        case (11)
            call MPI_ALLTOALL(own, whole, MPI_INTEGER, got, whole, MPI_INTEGER, MPI_COMM_WORLD, ierr)
        case (12)
            call MPI_ALLTOALLV(own, own_counts, own_places, MPI_INTEGER, got, counts, places, MPI_INTEGER, MPI_COMM_WORLD, &
                               ierr)
        case (13)
            call MPI_ALLTOALLW(own, own_counts, own_places, sent_types, got, counts, places, received_types, MPI_COMM_WORLD, &
                               ierr)
        case (14)
            call MPI_ALLGATHERV(own, mine, MPI_INTEGER, got, counts, places, MPI_INTEGER, MPI_COMM_WORLD, ierr)
        case (15)
            call MPI_ALLTOALL(MPI_IN_PLACE, none, MPI_INTEGER, got, whole, MPI_INTEGER, MPI_COMM_WORLD, ierr)
        case (16)
            call MPI_ALLTOALLV(MPI_IN_PLACE, own_counts, own_places, MPI_INTEGER, got, counts, places, MPI_INTEGER, &
                               MPI_COMM_WORLD, ierr)
        case (17)
            call MPI_ALLTOALLW(MPI_IN_PLACE, own_counts, own_places, sent_types, got, counts, places, received_types, &
                               MPI_COMM_WORLD, ierr)
        case (21)
            call MPI_IALLTOALL(own, whole, MPI_INTEGER, got, whole, MPI_INTEGER, MPI_COMM_WORLD, request, ierr)
        case (22)
            call MPI_IALLTOALLV(own, own_counts, own_places, MPI_INTEGER, got, counts, places, MPI_INTEGER, MPI_COMM_WORLD, &
                                request, ierr)
        case (23)
            call MPI_IALLTOALLW(own, own_counts, own_places, sent_types, got, counts, places, received_types, &
                                MPI_COMM_WORLD, request, ierr)
        case (24)
            call MPI_IALLGATHERV(own, mine, MPI_INTEGER, got, counts, places, MPI_INTEGER, MPI_COMM_WORLD, &
                                 request, ierr)
        case (25)
            call MPI_IALLTOALL(MPI_IN_PLACE, none, MPI_INTEGER, got, whole, MPI_INTEGER, MPI_COMM_WORLD, request, ierr)
        case (26)
            call MPI_IALLTOALLV(MPI_IN_PLACE, own_counts, own_places, MPI_INTEGER, got, counts, places, MPI_INTEGER, &
                                MPI_COMM_WORLD, request, ierr)
        case (27)
            call MPI_IALLTOALLW(MPI_IN_PLACE, own_counts, own_places, sent_types, got, counts, places, received_types, &
                                MPI_COMM_WORLD, request, ierr)
#if !defined(NO_PLANS)
        case (31)
            call MPI_ALLTOALL_INIT(own, whole, MPI_INTEGER, got, whole, MPI_INTEGER, MPI_COMM_WORLD, MPI_INFO_NULL, request, &
                                   ierr)
        case (32)
            call MPI_ALLTOALLV_INIT(own, own_counts, own_places, MPI_INTEGER, got, counts, places, MPI_INTEGER, &
                                    MPI_COMM_WORLD, MPI_INFO_NULL, request, ierr)
        case (33)
            call MPI_ALLTOALLW_INIT(own, own_counts, own_places, sent_types, got, counts, places, received_types, &
                                    MPI_COMM_WORLD, MPI_INFO_NULL, request, ierr)
        case (34)
            call MPI_ALLGATHERV_INIT(own, mine, MPI_INTEGER, got, counts, places, MPI_INTEGER, MPI_COMM_WORLD, &
                                     MPI_INFO_NULL, request, ierr)
        case (35)
            call MPI_ALLTOALL_INIT(MPI_IN_PLACE, none, MPI_INTEGER, got, whole, MPI_INTEGER, MPI_COMM_WORLD, MPI_INFO_NULL, &
                                   request, ierr)
        case (36)
            call MPI_ALLTOALLV_INIT(MPI_IN_PLACE, own_counts, own_places, MPI_INTEGER, got, counts, places, MPI_INTEGER, &
                                    MPI_COMM_WORLD, MPI_INFO_NULL, request, ierr)
        case (37)
            call MPI_ALLTOALLW_INIT(MPI_IN_PLACE, own_counts, own_places, sent_types, got, counts, places, &
                                    received_types, MPI_COMM_WORLD, MPI_INFO_NULL, request, ierr)
#endif
        end select
    end subroutine

    subroutine examine()
        do k = 1, ranks
            select case (kind)
            case (1, 5)
                call expect(got(:, k), n, value_of(k - 1, rank))
            case (4)
                call expect(got(:, k), ragged(k - 1, 0), value_of(k - 1, 0))
            case default
                call expect(got(:, k), ragged(k - 1, rank), value_of(k - 1, rank))
            end select
        end do
    end subroutine

    subroutine expect(block, there, value)
        integer, intent(in) :: block(n), there, value
        if (any(block(:there) /= value)) wrong = wrong + 1
        if (any(block(there + 1:) /= untouched)) wrong = wrong + 1
    end subroutine

#if !defined(NO_PLANS)
    ! The plan is started and completed, the second time by tests; it stays.
    subroutine run_once()
        call MPI_START(request, ierr)
        flag = .false.
        if (start == 2) then
            do while (.not. flag)
                call MPI_TEST(request, flag, MPI_STATUS_IGNORE, ierr)
            end do
        else
            call MPI_WAIT(request, MPI_STATUS_IGNORE, ierr)
        end if
        if (request == MPI_REQUEST_NULL) wrong = wrong + 1
    end subroutine

    ! Three plans beside each other, started at once; one of a barrier is freed that never was, and one is started.
    subroutine other_plans()
        kind = 8
        call MPI_BCAST_INIT(message, whole, MPI_INTEGER, 1, MPI_COMM_WORLD, MPI_INFO_NULL, plans(1), ierr)
        call MPI_ALLREDUCE_INIT(MPI_IN_PLACE, sums, whole, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, plans(2), &
                                ierr)
        call MPI_ALLGATHER_INIT(own, whole, MPI_INTEGER, got, whole, MPI_INTEGER, MPI_COMM_WORLD, MPI_INFO_NULL, plans(3), &
                                ierr)
        call MPI_BARRIER_INIT(MPI_COMM_WORLD, MPI_INFO_NULL, request, ierr)
        call MPI_REQUEST_FREE(request, ierr)
        if (request /= MPI_REQUEST_NULL) wrong = wrong + 1
        call barriers()
        do start = 1, 3
            message = untouched
            if (rank == 1) message = start
            sums = rank + start
            own(:, 1) = value_of(rank, start)
            got = untouched
            call MPI_STARTALL(3, plans, ierr)
            if (start == 2) then
                do in = 1, 3
                    call MPI_WAITANY(3, plans, k, MPI_STATUS_IGNORE, ierr)
                end do
            else
                call MPI_WAITALL(3, plans, MPI_STATUSES_IGNORE, ierr)
            end if
            if (any(message /= start)) wrong = wrong + 1
            if (any(sums /= ranks * start + ranks * (ranks - 1) / 2)) wrong = wrong + 1
            do k = 1, ranks
                call expect(got(:, k), n, value_of(k - 1, start))
            end do
        end do
        do k = 1, 3
            if (plans(k) == MPI_REQUEST_NULL) wrong = wrong + 1
            call MPI_REQUEST_FREE(plans(k), ierr)
            if (plans(k) /= MPI_REQUEST_NULL) wrong = wrong + 1
        end do
    end subroutine

    ! By the host's clock nobody has gone on before everybody came; the last rank comes late, a twentieth of a second.
    subroutine barriers()
        integer(kind=8) :: came, went, now, rate, all_came(8), all_went(8)
        call MPI_BARRIER_INIT(MPI_COMM_WORLD, MPI_INFO_NULL, request, ierr)
        do start = 1, 3
            call system_clock(came, rate)
            now = came
            do while (rank == ranks - 1 .and. now < came + rate / 20)
                call system_clock(now)
            end do
            came = now
            call run_once()
            call system_clock(went)
            call MPI_GATHER(came, 1, MPI_INTEGER8, all_came, 1, MPI_INTEGER8, 0, MPI_COMM_WORLD, ierr)
            call MPI_GATHER(went, 1, MPI_INTEGER8, all_went, 1, MPI_INTEGER8, 0, MPI_COMM_WORLD, ierr)
            if (rank == 0) then
                if (maxval(all_came(:ranks)) > minval(all_went(:ranks))) wrong = wrong + 1
            end if
        end do
        call MPI_REQUEST_FREE(request, ierr)
        if (request /= MPI_REQUEST_NULL) wrong = wrong + 1
    end subroutine
#endif
end program
