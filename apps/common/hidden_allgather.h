// An allgather that work may go beside, in each of the ways that version.h names, and the books about it.
// Plain MPI: what makes it progress meanwhile is not this program's business.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

#include "common/arithmetic.h"
#include "common/version.h"
#include "common/work.h"

namespace thalweg::apps {

// One rank's seconds of one run.
class Books {
  public:
    // gathers: how many allgathers there are to a round; windows: how many stretches of work go beside them.
    Books(std::size_t gathers, std::size_t windows)
        : sums_{0, 0, 0, 0, std::vector<double>(gathers), std::vector<double>(windows)} {}

    // Any other work or MPI call: does f.
    template <class F>
    void compute(F&& f) {
        const double begin = now();
        f();
        sums_.compute += now() - begin;
    }
    template <class F>
    void communicate(F&& f) {
        const double begin = now();
        f();
        sums_.communication += now() - begin;
    }

    void worked(std::size_t stage, double seconds) {
        sums_.compute += seconds;
        sums_.windows[stage] += seconds;
    }
    // A stretch of work with no allgather beside it.
    void worked_alone(double seconds) { sums_.compute += seconds; }
    void gathered(std::size_t stage, double seconds) {
        sums_.communication += seconds;
        sums_.visible += seconds;
        sums_.gathers[stage] += seconds;
    }

    // Collective. The means over ranks, and the largest of `total` (this rank's seconds of the run).
    Sample over_ranks(double total, MPI_Comm comm) const;

  private:
    Sample sums_;
};

// Used as begin, beside once, end; again and again. The buffers are the allgather's until end.
class HiddenAllgather {
  public:
    HiddenAllgather(Version version, MPI_Comm comm, Books& books)
        : version_(version), comm_(comm), books_(books) {}

    // Collective: `count` elements of `type` of every rank, in rank order, into `receive`.
    void begin(std::size_t stage, const void* send, int count, MPI_Datatype type, void* receive) {
        stage_ = stage;
        const double start = now();
        if (version_.style == Style::blocking) {
            MPI_Allgather(send, count, type, receive, count, type, comm_);
        } else {
            MPI_Iallgather(send, count, type, receive, count, type, comm_, &request_);
            if (version_.style == Style::waited) MPI_Wait(&request_, MPI_STATUS_IGNORE);
        }
        books_.gathered(stage_, now() - start);
    }

    // Work that needs nothing of what is being gathered; see work_in_pieces.
    template <class Piece>
    void beside(std::size_t items, double sleep_seconds, Piece&& piece) {
        const double seconds = work_in_pieces(
            items, version_.pieces, sleep_seconds, static_cast<Piece&&>(piece), [this](bool last) {
                if (version_.style != Style::manual || last || request_ == MPI_REQUEST_NULL) return;
                int done = 0;
                const double start = now();
                MPI_Test(&request_, &done, MPI_STATUS_IGNORE);
                books_.gathered(stage_, now() - start);
            });
        books_.worked(stage_, seconds);
    }

    void end() {
        if (request_ == MPI_REQUEST_NULL) return;
        const double start = now();
        MPI_Wait(&request_, MPI_STATUS_IGNORE);
        books_.gathered(stage_, now() - start);
    }

  private:
    Version version_;
    MPI_Comm comm_;
    Books& books_;
    std::size_t stage_ = 0;
    MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace thalweg::apps
