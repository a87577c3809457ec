! What the Fortran examples broadcast and how they compare it: the same for mpif.h, `use mpi` and `use mpi_f08`, whose
! handles have different types. No MPI in here. Compile it in front of the example:
!
!     mpif90 bcast_checks.f90 bcast_f08.f90 -o bcast
module bcast_checks
    implicit none
    integer, parameter :: maxn = 300000, poison = -77
    integer, parameter :: sizes(6) = [0, 1, 7, 1000, 32768, 262144]
    ! Receivers take a strided message into every third element.
    integer, parameter :: blocks = 50000, stride = 3

contains

    ! The buffer before a broadcast of n elements: message `seed` on the root, poison elsewhere and behind it.
    subroutine prepare(buf, n, seed, is_root)
        integer, intent(out) :: buf(0:)
        integer, intent(in) :: n, seed
        logical, intent(in) :: is_root
        integer :: i

        buf = poison
        if (is_root) buf(0:n - 1) = [(seed*1000003 + i, i=0, n - 1)]
    end subroutine prepare

    ! How many elements are not what they must be after it.
    integer function wrong_elements(buf, n, seed)
        integer, intent(in) :: buf(0:)
        integer, intent(in) :: n, seed
        integer :: i

        wrong_elements = count(buf(0:n - 1) /= [(seed*1000003 + i, i=0, n - 1)]) + count(buf(n:) /= poison)
    end function wrong_elements

    ! The same for the strided message, which the root sends as plain integers.
    subroutine prepare_strided(buf, is_root)
        integer, intent(out) :: buf(0:)
        logical, intent(in) :: is_root
        integer :: i

        buf = poison
        if (is_root) buf(0:blocks - 1) = [(i + 5, i=0, blocks - 1)]
    end subroutine prepare_strided

    ! Of a receiver.
    integer function wrong_strided_elements(buf)
        integer, intent(in) :: buf(0:)
        integer :: i

        wrong_strided_elements = count(buf(0:stride*blocks - 1:stride) /= [(i + 5, i=0, blocks - 1)])
        do i = 1, stride - 1
            wrong_strided_elements = wrong_strided_elements + count(buf(i:stride*blocks - 1:stride) /= poison)
        end do
    end function wrong_strided_elements

    ! What rank 0 says at the end. total: wrong elements of all ranks.
    subroutine tell(rank, ranks, total)
        integer, intent(in) :: rank, ranks, total

        if (rank /= 0) return
        if (total == 0) then
            print '(A,I0,A)', '# ', ranks, ' ranks: every byte correct'
        else
            print '(A,I0,A)', '# ', total, ' WRONG elements'
        end if
    end subroutine tell

end module bcast_checks
