C     Broadcasts and checks every element, through mpif.h: several sizes,
C     every root, and a strided datatype on the receiving side. Buffers
C     are poisoned before every call. Exits with 1 on a wrong element.
      program bcast_mpif
      implicit none
      include 'mpif.h'
      integer maxn, poison
      parameter (maxn = 300000, poison = -77)
      integer buf(0:maxn), sizes(6)
      integer rank, ranks, root, n, s, i, ierr, wrong, total, seed
      integer vec, blocks
      data sizes /0, 1, 7, 1000, 32768, 262144/

      call MPI_INIT(ierr)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, ierr)
      wrong = 0
      seed = 0
      do 40 s = 1, 6
        n = sizes(s)
        do 30 root = 0, ranks - 1
          seed = seed + 1
          do 10 i = 0, maxn
            buf(i) = poison
 10       continue
          if (rank .eq. root) then
            do 15 i = 0, n - 1
              buf(i) = seed * 1000003 + i
 15         continue
          end if
          call MPI_BCAST(buf, n, MPI_INTEGER, root, MPI_COMM_WORLD,
     &                   ierr)
          if (ierr .ne. MPI_SUCCESS) wrong = wrong + 1
          do 20 i = 0, n - 1
            if (buf(i) .ne. seed * 1000003 + i) wrong = wrong + 1
 20       continue
          do 25 i = n, maxn
            if (buf(i) .ne. poison) wrong = wrong + 1
 25       continue
 30     continue
 40   continue

C     The root sends plain integers; the others take every third.
      blocks = 50000
      call MPI_TYPE_VECTOR(blocks, 1, 3, MPI_INTEGER, vec, ierr)
      call MPI_TYPE_COMMIT(vec, ierr)
      do 50 i = 0, maxn
        buf(i) = poison
 50   continue
      root = ranks - 1
      if (rank .eq. root) then
        do 60 i = 0, blocks - 1
          buf(i) = i + 5
 60     continue
        call MPI_BCAST(buf, blocks, MPI_INTEGER, root, MPI_COMM_WORLD,
     &                 ierr)
      else
        call MPI_BCAST(buf, 1, vec, root, MPI_COMM_WORLD, ierr)
        do 70 i = 0, 3 * blocks - 1
          if (mod(i, 3) .eq. 0) then
            if (buf(i) .ne. i / 3 + 5) wrong = wrong + 1
          else
            if (buf(i) .ne. poison) wrong = wrong + 1
          end if
 70     continue
      end if
      call MPI_TYPE_FREE(vec, ierr)

      call MPI_ALLREDUCE(wrong, total, 1, MPI_INTEGER, MPI_SUM,
     &                   MPI_COMM_WORLD, ierr)
      if (rank .eq. 0) then
        if (total .eq. 0) then
          print '(A,I0,A)', '# ', ranks, ' ranks: every byte correct'
        else
          print '(A,I0,A)', '# ', total, ' WRONG elements'
        end if
      end if
      call MPI_FINALIZE(ierr)
      if (total .ne. 0) stop 1
      end
