C     Broadcasts and checks every element, through mpif.h: several sizes,
C     every root, and a strided datatype on the receiving side. Buffers
C     are poisoned before every call. Exits with 1 on a wrong element.
      program bcast_mpif
      use bcast_checks
      implicit none
      include 'mpif.h'
      integer buf(0:maxn)
      integer rank, ranks, root, s, ierr, wrong, total, seed, vec

      call MPI_INIT(ierr)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, ierr)
      wrong = 0
      seed = 0
      do 20 s = 1, 6
        do 10 root = 0, ranks - 1
          seed = seed + 1
          call prepare(buf, sizes(s), seed, rank .eq. root)
          call MPI_BCAST(buf, sizes(s), MPI_INTEGER, root,
     &                   MPI_COMM_WORLD, ierr)
          if (ierr .ne. MPI_SUCCESS) wrong = wrong + 1
          wrong = wrong + wrong_elements(buf, sizes(s), seed)
 10     continue
 20   continue

C     The root sends plain integers; the others take every third.
      call MPI_TYPE_VECTOR(blocks, 1, stride, MPI_INTEGER, vec, ierr)
      call MPI_TYPE_COMMIT(vec, ierr)
      root = ranks - 1
      call prepare_strided(buf, rank .eq. root)
      if (rank .eq. root) then
        call MPI_BCAST(buf, blocks, MPI_INTEGER, root, MPI_COMM_WORLD,
     &                 ierr)
      else
        call MPI_BCAST(buf, 1, vec, root, MPI_COMM_WORLD, ierr)
        wrong = wrong + wrong_strided_elements(buf)
      end if
      call MPI_TYPE_FREE(vec, ierr)

      call MPI_ALLREDUCE(wrong, total, 1, MPI_INTEGER, MPI_SUM,
     &                   MPI_COMM_WORLD, ierr)
      call tell(rank, ranks, total)
      call MPI_FINALIZE(ierr)
      if (total .ne. 0) stop 1
      end
