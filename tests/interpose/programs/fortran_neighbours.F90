! Neighbourhood collectives from Fortran with mpif.h, `use mpi` (USE_MODULE) or `use mpi_f08` (USE_F08), on a ring that
! goes round: every element of every block, and what lies beside it. At least three ranks, so that both neighbours differ.
! With USE_LARGE as well, counts are of MPI_COUNT_KIND. Where THALWEG_TEST_TAKEN is set, plans as well (NO_PLANS: the library
! has none), and, with counts of the usual kind, all of it on a distributed graph, on a graph and on a line with two ends; what
! the libraries make of those is not ours to judge. Before all that graphs with weights and without.
program fortran_neighbours
#if defined(USE_F08)
    use mpi_f08
    implicit none
    type(MPI_Comm) :: ring, graph
    type(MPI_Request) :: request
    type(MPI_Datatype) :: column, sent_types(2), received_types(2)
#elif defined(USE_MODULE)
    use mpi
    implicit none
    integer :: ring, graph, request, column, sent_types(2), received_types(2)
#else
    implicit none
    include 'mpif.h'
    integer :: ring, graph, request, column, sent_types(2), received_types(2)
#endif
    integer, parameter :: n = 1500, untouched = -7
#if defined(USE_LARGE)
    integer, parameter :: counted = MPI_COUNT_KIND, placed = MPI_ADDRESS_KIND
#else
    integer, parameter :: counted = selected_int_kind(9), placed = counted
#endif
    integer(kind=counted), parameter :: whole = n
    integer :: own(n, 2), got(n, 3), table(2, n), rank, ranks, below, above, provided, ierr, round, form, kind, wrong
    integer(kind=counted) :: counts(2), own_counts(2)
    integer(kind=placed) :: places(2), own_places(2)
    integer(kind=MPI_ADDRESS_KIND) :: far(2), own_far(2)
    integer :: length
    logical :: ours
    character(len=8) :: text

    call get_environment_variable('THALWEG_TEST_TAKEN', text, length)
    ours = length > 0
    call MPI_INIT_THREAD(MPI_THREAD_MULTIPLE, provided, ierr)
    call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, ierr)
#if defined(USE_LARGE)
    ! The same as a graph, because of a grid MPICH 4.0.2's mpi_f08 asks for a graph's neighbours.
    call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
    below = modulo(rank - 1, ranks)
    above = modulo(rank + 1, ranks)
    call MPI_DIST_GRAPH_CREATE_ADJACENT(MPI_COMM_WORLD, 2, [below, above], MPI_UNWEIGHTED, 2, [below, above], MPI_UNWEIGHTED, &
                                        MPI_INFO_NULL, .false., ring, ierr)
#else
    call MPI_CART_CREATE(MPI_COMM_WORLD, 1, [ranks], [.true.], .false., ring, ierr)
    call MPI_COMM_RANK(ring, rank, ierr)
    below = modulo(rank - 1, ranks)
    above = modulo(rank + 1, ranks)
#endif
    ! Every second integer of a table with two rows.
    call MPI_TYPE_VECTOR(n, 1, 2, MPI_INTEGER, column, ierr)
    call MPI_TYPE_COMMIT(column, ierr)
    wrong = 0
    call graphs()
    do round = 1, 6
        call all_forms()
    end do
    call MPI_COMM_FREE(ring, ierr)
#if !defined(USE_LARGE)
    if (ours) call other_topologies()
#endif
    call MPI_TYPE_FREE(column, ierr)
    if (wrong /= 0) print '(A,I0,A,I0)', 'rank ', rank, ' wrong ', wrong
    if (rank == 0 .and. wrong == 0) print '(A,I0,A)', 'done on ', ranks, ' ranks'
    call MPI_FINALIZE(ierr)
    if (wrong /= 0) stop 1

contains

    ! Every operation, blocking and nonblocking, and as a plan.
    subroutine all_forms()
        do form = 1, 2
            do kind = 1, 5
                call prepare()
                select case (kind)
                case (1)
                    if (form == 1) call MPI_NEIGHBOR_ALLGATHER(own, whole, MPI_INTEGER, got, whole, MPI_INTEGER, ring, ierr)
                    if (form == 2) call MPI_INEIGHBOR_ALLGATHER(own, whole, MPI_INTEGER, got, whole, MPI_INTEGER, ring, request, ierr)
                case (2)
                    counts = n
                    if (form == 1) call MPI_NEIGHBOR_ALLGATHERV(own, whole, MPI_INTEGER, got, counts, places, MPI_INTEGER, ring, ierr)
                    if (form == 2) call MPI_INEIGHBOR_ALLGATHERV(own, whole, MPI_INTEGER, got, counts, places, MPI_INTEGER, ring, &
                                                                 request, ierr)
                case (3)
                    if (form == 1) call MPI_NEIGHBOR_ALLTOALL(own, whole, MPI_INTEGER, got, whole, MPI_INTEGER, ring, ierr)
                    if (form == 2) call MPI_INEIGHBOR_ALLTOALL(own, whole, MPI_INTEGER, got, whole, MPI_INTEGER, ring, request, ierr)
                case (4)
                    if (form == 1) call MPI_NEIGHBOR_ALLTOALLV(own, own_counts, own_places, MPI_INTEGER, got, counts, places, &
                                                               MPI_INTEGER, ring, ierr)
                    if (form == 2) call MPI_INEIGHBOR_ALLTOALLV(own, own_counts, own_places, MPI_INTEGER, got, counts, &
                                                                places, MPI_INTEGER, ring, request, ierr)
                case (5)
                    ! Columns leave, runs arrive.
                    own_counts = 1
                    own_far = [0, 4]
                    counts = n
                    sent_types = column
                    received_types = MPI_INTEGER
                    if (form == 1) call MPI_NEIGHBOR_ALLTOALLW(table, own_counts, own_far, sent_types, got, counts, far, &
                                                               received_types, ring, ierr)
                    if (form == 2) call MPI_INEIGHBOR_ALLTOALLW(table, own_counts, own_far, sent_types, got, counts, far, &
                                                                received_types, ring, request, ierr)
                end select
                if (form == 2) call MPI_WAIT(request, MPI_STATUS_IGNORE, ierr)
                call examine()
            end do
        end do
#if !defined(NO_PLANS)
        if (ours) then
            do kind = 1, 5
                call plan()
            end do
        end if
#endif
    end subroutine

#if !defined(USE_LARGE)
    ! The ring as a distributed graph and as a graph; then a line, whose first rank has nobody below and whose last has
    ! nobody above: what would come from there stays as it is.
    subroutine other_topologies()
        integer :: topology, i, ends(ranks), edges(2 * ranks)
        ends = [(2 * i, i = 1, ranks)]
        edges = [(modulo(i - 1, ranks), modulo(i + 1, ranks), i = 0, ranks - 1)]
        do topology = 1, 3
            select case (topology)
            case (1)
                call MPI_DIST_GRAPH_CREATE_ADJACENT(MPI_COMM_WORLD, 2, [below, above], MPI_UNWEIGHTED, 2, [below, above], &
                                                    MPI_UNWEIGHTED, MPI_INFO_NULL, .false., ring, ierr)
            case (2)
                call MPI_GRAPH_CREATE(MPI_COMM_WORLD, ranks, ends, edges, .false., ring, ierr)
            case (3)
                call MPI_CART_CREATE(MPI_COMM_WORLD, 1, [ranks], [.false.], .false., ring, ierr)
                if (rank == 0) below = MPI_PROC_NULL
                if (rank == ranks - 1) above = MPI_PROC_NULL
            end select
            do round = 7, 8
                call all_forms()
            end do
            call MPI_COMM_FREE(ring, ierr)
        end do
    end subroutine
#endif

    ! One edge, from rank 0 to rank 1. A rank that has none has no weights either: MPI_WEIGHTS_EMPTY.
    subroutine graphs()
        if (rank == 0) then
            call MPI_DIST_GRAPH_CREATE_ADJACENT(MPI_COMM_WORLD, 0, [0], MPI_WEIGHTS_EMPTY, 1, [1], [5], MPI_INFO_NULL, .false., &
                                                graph, ierr)
        else if (rank == 1) then
            call MPI_DIST_GRAPH_CREATE_ADJACENT(MPI_COMM_WORLD, 1, [0], [5], 0, [0], MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, .false., &
                                                graph, ierr)
        else
            call MPI_DIST_GRAPH_CREATE_ADJACENT(MPI_COMM_WORLD, 0, [0], MPI_WEIGHTS_EMPTY, 0, [0], MPI_WEIGHTS_EMPTY, &
                                                MPI_INFO_NULL, .false., graph, ierr)
        end if
        call examine_graph(.true.)
        call MPI_DIST_GRAPH_CREATE_ADJACENT(MPI_COMM_WORLD, merge(1, 0, rank == 1), [0], MPI_UNWEIGHTED, merge(1, 0, rank == 0), &
                                            [1], MPI_UNWEIGHTED, MPI_INFO_NULL, .false., graph, ierr)
        call examine_graph(.false.)
    end subroutine

    subroutine examine_graph(with_weights)
        logical, intent(in) :: with_weights
        logical :: weighted
        integer :: incoming, outgoing, from(1), to(1), weights(1), other_weights(1)
        call MPI_DIST_GRAPH_NEIGHBORS_COUNT(graph, incoming, outgoing, weighted, ierr)
        if (incoming /= merge(1, 0, rank == 1) .or. outgoing /= merge(1, 0, rank == 0)) wrong = wrong + 1
        if (weighted .neqv. with_weights) wrong = wrong + 1
        if (with_weights) then
            call MPI_DIST_GRAPH_NEIGHBORS(graph, incoming, from, weights, outgoing, to, other_weights, ierr)
            if (rank == 0 .and. (to(1) /= 1 .or. other_weights(1) /= 5)) wrong = wrong + 1
            if (rank == 1 .and. (from(1) /= 0 .or. weights(1) /= 5)) wrong = wrong + 1
        end if
        call MPI_COMM_FREE(graph, ierr)
    end subroutine

    subroutine prepare()
        own(:, 1) = value_of(rank, 1)
        own(:, 2) = value_of(rank, 2)
        table(1, :) = value_of(rank, 1)
        table(2, :) = value_of(rank, 2)
        got = untouched
        ! What is for above is one shorter than what is for below; blocks arrive in the other order, apart.
        own_counts = [n, n - 1]
        own_places = [0, n]
        counts = [n - 1, n]
        places = [2 * n, 0]
        far = 4 * places
    end subroutine

#if !defined(NO_PLANS)
    ! Started twice.
    subroutine plan()
        integer :: start
        call prepare()
        select case (kind)
        case (1)
            call MPI_NEIGHBOR_ALLGATHER_INIT(own, whole, MPI_INTEGER, got, whole, MPI_INTEGER, ring, MPI_INFO_NULL, request, ierr)
        case (2)
            counts = n
            call MPI_NEIGHBOR_ALLGATHERV_INIT(own, whole, MPI_INTEGER, got, counts, places, MPI_INTEGER, ring, MPI_INFO_NULL, &
                                              request, ierr)
        case (3)
            call MPI_NEIGHBOR_ALLTOALL_INIT(own, whole, MPI_INTEGER, got, whole, MPI_INTEGER, ring, MPI_INFO_NULL, request, ierr)
        case (4)
            call MPI_NEIGHBOR_ALLTOALLV_INIT(own, own_counts, own_places, MPI_INTEGER, got, counts, places, MPI_INTEGER, ring, &
                                             MPI_INFO_NULL, request, ierr)
        case (5)
            own_counts = 1
            own_far = [0, 4]
            counts = n
            sent_types = column
            received_types = MPI_INTEGER
            call MPI_NEIGHBOR_ALLTOALLW_INIT(table, own_counts, own_far, sent_types, got, counts, far, received_types, ring, &
                                             MPI_INFO_NULL, request, ierr)
        end select
        do start = 1, 2
            got = untouched
            call MPI_START(request, ierr)
            call MPI_WAIT(request, MPI_STATUS_IGNORE, ierr)
            call examine()
        end do
        call MPI_REQUEST_FREE(request, ierr)
    end subroutine
#endif

    integer function value_of(from, block)
        integer, intent(in) :: from, block
        value_of = from * 1000 + block * 100 + round * 10 + kind
    end function

    ! What comes from below is what it sent above, its second block; and the other way round. Nothing comes from nobody.
    subroutine examine()
        integer :: from_below, from_above, length_below, length_above
        from_below = value_of(below, 2)
        from_above = value_of(above, 1)
        length_below = merge(0, n, below == MPI_PROC_NULL)
        length_above = merge(0, n, above == MPI_PROC_NULL)
        select case (kind)
        case (1)
            call expect(got(:, 1), length_below, value_of(below, 1))
            call expect(got(:, 2), length_above, value_of(above, 1))
            call expect(got(:, 3), 0, 0)
        case (2)
            call expect(got(:, 3), length_below, value_of(below, 1))
            call expect(got(:, 1), length_above, value_of(above, 1))
            call expect(got(:, 2), 0, 0)
        case (3)
            call expect(got(:, 1), length_below, from_below)
            call expect(got(:, 2), length_above, from_above)
            call expect(got(:, 3), 0, 0)
        case (4)
            call expect(got(:, 3), max(length_below - 1, 0), from_below)
            call expect(got(:, 1), length_above, from_above)
            call expect(got(:, 2), 0, 0)
        case (5)
            call expect(got(:, 3), length_below, from_below)
            call expect(got(:, 1), length_above, from_above)
            call expect(got(:, 2), 0, 0)
        end select
    end subroutine

    subroutine expect(block, length, value)
        integer, intent(in) :: block(n), length, value
        if (any(block(:length) /= value)) wrong = wrong + 1
        if (any(block(length + 1:) /= untouched)) wrong = wrong + 1
    end subroutine
end program
