// The smallest eigenvalue of a sparse matrix by the inverse power method, each step solved by the conjugate
// gradient, rows and vectors spread over the ranks. Every product of the matrix needs the whole vector: it is
// gathered, and meanwhile each rank multiplies its own part of the vector by the block of its own columns.
// The vector is gathered in segments, one after another; while a segment is under way, the columns of the one
// before are multiplied. The blocking version gathers it in one piece.
//
// Plain MPI. That a conjugate gradient can hide such communication is the result of Miwa and Nakashima, PDP
// 2015.
#include <fmt/format.h>
#include <mpi.h>

#include <cmath>
#include <limits>

#include "common/program.h"
#include "conjugate_gradient/matrix.h"
#include "conjugate_gradient/options.h"
#include "conjugate_gradient/solve.h"

namespace thalweg::apps {
namespace {

class Solver {
  public:
    // Collective. `rows` are this rank's.
    Solver(const Job& job, const GradientOptions& options, Method method, Partition partition,
           const Rows& rows)
        : job_(job), options_(options), method_(method), partition_(partition) {
        whole_ = split(rows, partition, job.rank, 1);
        cut_ = split(rows, partition, job.rank, options.segments);
        own_ = static_cast<std::size_t>(partition.count(job.rank));
        // Padding of the last segment stays zero.
        const std::int64_t padded =
            std::max(whole_.segment_length, cut_.segment_length * static_cast<std::int64_t>(cut_.segments));
        for (auto* vector : {&p_, &z_}) vector->assign(static_cast<std::size_t>(padded), 0.0);
        for (auto* vector : {&x_, &r_, &q_}) vector->assign(own_, 0.0);
        gathered_.resize(
            static_cast<std::size_t>(std::max(whole_.segment_length, cut_.segment_length) * job.ranks));
        found_.z.resize(own_);
    }

    void run(Version version, Books& books) {
        x_.assign(own_, 1.0);
        broken_ = false;
        for (int outer = 0; outer < method_.outer && !broken_; ++outer) step(version, books);
    }

    // The serial solution of the same problem; this rank's part of z.
    void expect(Solution serial) { serial_ = std::move(serial); }
    void expect_zeta(double published) { published_ = published; }

    std::string check() {
        if (broken_) return "the conjugate gradient broke down: is the matrix symmetric and definite?";
        if (options_.common.damage && partition_.owner(partition_.items / 2) == job_.rank)
            found_.z[found_.z.size() / 2] *= 1 + 1e-6;
        double own[2] = {0, 0}, all[2];  // the largest difference, and the largest element
        for (std::size_t i = 0; i < own_; ++i) {
            const double difference = std::abs(found_.z[i] - serial_.z[i]);
            // No number must not hide behind a maximum.
            if (!(difference <= own[0]))
                own[0] = std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
            own[1] = std::max(own[1], std::abs(serial_.z[i]));
        }
        MPI_Allreduce(own, all, 2, MPI_DOUBLE, MPI_MAX, job_.comm);
        Difference difference;
        difference.z = all[0] / all[1];
        difference.residual = std::abs(found_.residual - serial_.residual) / serial_.x_norm;
        difference.zeta = std::abs(found_.zeta - serial_.zeta) / std::abs(serial_.zeta);
        std::string wrong = judge(difference, options_.tolerance);
        if (wrong.empty() && published_ != 0 &&
            !(std::abs(found_.zeta - published_) <= zeta_tolerance * published_))
            wrong =
                fmt::format("zeta is {:.13g}, and the benchmark publishes {:.13g}", found_.zeta, published_);
        return wrong;
    }

  private:
    double sum(double mine, Books& books) const {
        double all = 0;
        books.communicate([&] { MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, job_.comm); });
        return all;
    }

    // The sum over all ranks of f(i), i over this rank's elements.
    template <class F>
    double sum_of(Books& books, F&& f) const {
        double mine = 0;
        books.compute([&] {
            for (std::size_t i = 0; i < own_; ++i) mine += f(i);
        });
        return sum(mine, books);
    }

    // q = A v, where v is padded to whole segments.
    void product(Version version, const std::vector<double>& v, Books& books) {
        const SplitRows& matrix = version.style == Style::blocking ? whole_ : cut_;
        const auto part_times = [&](std::size_t part, const double* vector) {
            return [&matrix, this, part, vector](std::size_t begin, std::size_t end) {
                multiply(matrix.parts[part], vector, q_.data(), begin, end, part > 0);
            };
        };
        const auto slept = [&](std::size_t part) {
            return options_.common.slowdown * static_cast<double>(matrix.parts[part].entries());
        };
        const auto segments = static_cast<std::size_t>(matrix.segments);
        const auto length = static_cast<std::size_t>(matrix.segment_length);
        // Two buffers: one is multiplied while the next segment arrives in the other.
        arriving_.resize(gathered_.size());
        HiddenAllgather gather(version, job_.comm, books);
        for (std::size_t segment = 0; segment < segments; ++segment) {
            gather.begin(segment, v.data() + segment * length, static_cast<int>(length), MPI_DOUBLE,
                         arriving_.data());
            gather.beside(own_, slept(segment),
                          part_times(segment, segment == 0 ? v.data() : gathered_.data()));
            gather.end();
            gathered_.swap(arriving_);
        }
        books.worked_alone(
            work_in_pieces(own_, 1, slept(segments), part_times(segments, gathered_.data()), [](bool) {}));
    }

    // One step of the inverse power method.
    void step(Version version, Books& books) {
        double rho = sum_of(books, [&](std::size_t i) { return x_[i] * x_[i]; });
        const double first = rho;
        books.compute([&] {
            std::fill(z_.begin(), z_.end(), 0.0);
            r_ = x_;
            std::copy(x_.begin(), x_.end(), p_.begin());
        });
        for (int step = 0; step < method_.steps && rho > exhausted * first; ++step) {
            product(version, p_, books);
            const double d = sum_of(books, [&](std::size_t i) { return p_[i] * q_[i]; });
            if (broke_down(d)) {
                broken_ = true;
                return;
            }
            const double alpha = rho / d;
            const double next = sum_of(books, [&](std::size_t i) {
                z_[i] += alpha * p_[i];
                r_[i] -= alpha * q_[i];
                return r_[i] * r_[i];
            });
            books.compute([&] {
                for (std::size_t i = 0; i < own_; ++i) p_[i] = r_[i] + next / rho * p_[i];
            });
            rho = next;
        }
        product(version, z_, books);
        found_.residual =
            std::sqrt(sum_of(books, [&](std::size_t i) { return (x_[i] - q_[i]) * (x_[i] - q_[i]); }));
        found_.x_norm = std::sqrt(first);
        found_.zeta = method_.shift + 1 / sum_of(books, [&](std::size_t i) { return x_[i] * z_[i]; });
        const double norm = std::sqrt(sum_of(books, [&](std::size_t i) { return z_[i] * z_[i]; }));
        books.compute([&] {
            std::copy(z_.begin(), z_.begin() + static_cast<std::ptrdiff_t>(own_), found_.z.begin());
            for (std::size_t i = 0; i < own_; ++i) x_[i] = z_[i] / norm;
        });
    }

    const Job& job_;
    const GradientOptions& options_;
    Method method_;
    Partition partition_;
    SplitRows whole_, cut_;  // for the blocking version, and for the others
    std::size_t own_ = 0;
    std::vector<double> x_, r_, q_, p_, z_, gathered_, arriving_;
    bool broken_ = false;
    Solution found_, serial_;
    double published_ = 0;
};

// Reads the file on rank 0 and gives its entries to all. Collective.
std::vector<Entry> read_everywhere(const Job& job, const std::string& path, std::int64_t& n) {
    std::vector<Entry> entries;
    std::string why;
    if (job.rank == 0) read_matrix_market(path, n, entries, why);
    job.agree(why);
    std::int64_t facts[2] = {n, static_cast<std::int64_t>(entries.size())};
    MPI_Bcast(facts, 2, MPI_INT64_T, 0, job.comm);
    n = facts[0];
    entries.resize(static_cast<std::size_t>(facts[1]));
    constexpr std::size_t at_a_time = std::size_t{1} << 24;  // entries; MPI counts with an int
    for (std::size_t at = 0; at < entries.size(); at += at_a_time)
        MPI_Bcast(entries.data() + at,
                  static_cast<int>(std::min(at_a_time, entries.size() - at) * sizeof(Entry)), MPI_BYTE, 0,
                  job.comm);
    return entries;
}

// Solves on rank 0 and gives every rank its part. Collective.
Solution serial_solution(const Job& job, const Rows& matrix, const Method& method, Partition partition) {
    Solution serial;
    std::string why;
    if (job.rank == 0 && !solve_serial(matrix, method, serial))
        why = "the conjugate gradient breaks down on this matrix: it should be symmetric and definite";
    job.agree(why);
    double facts[3] = {serial.zeta, serial.residual, serial.x_norm};
    MPI_Bcast(facts, 3, MPI_DOUBLE, 0, job.comm);
    std::vector<int> counts, at;
    for (int rank = 0; rank < job.ranks; ++rank) {
        counts.push_back(static_cast<int>(partition.count(rank)));
        at.push_back(static_cast<int>(partition.begin(rank)));
    }
    std::vector<double> own(static_cast<std::size_t>(partition.count(job.rank)));
    MPI_Scatterv(serial.z.data(), counts.data(), at.data(), MPI_DOUBLE, own.data(),
                 static_cast<int>(own.size()), MPI_DOUBLE, 0, job.comm);
    return {facts[0], facts[1], facts[2], std::move(own)};
}

bool solve(const Job& job, const GradientOptions& options, NasProblem problem) {
    Method method{options.outer > 0 ? options.outer : problem.outer, options.steps, problem.shift};
    std::vector<Entry> entries;
    if (!options.file.empty()) {
        entries = read_everywhere(job, options.file, problem.n);
        method.shift = 0;
    }
    const Partition partition{problem.n, job.ranks};
    if (partition.largest() > std::numeric_limits<int>::max() / 2)
        throw BadInput(fmt::format("{} rows on {} ranks are more than MPI can gather", problem.n, job.ranks));
    const auto rows_between = [&](std::int64_t begin, std::int64_t end) {
        return options.file.empty() ? nas_rows(problem, begin, end) : rows_of(entries, begin, end);
    };
    const Rows own = rows_between(partition.begin(job.rank), partition.begin(job.rank + 1));
    Solver solver(job, options, method, partition, own);
    solver.expect(
        serial_solution(job, job.rank == 0 ? rows_between(0, problem.n) : Rows{}, method, partition));
    const bool as_published = problem.zeta != 0 && method.outer == problem.outer && method.steps == 25;
    if (as_published) solver.expect_zeta(problem.zeta);

    std::int64_t mine = static_cast<std::int64_t>(own.entries()), all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT64_T, MPI_SUM, job.comm);
    const std::string matrix = !options.file.empty()        ? options.file.substr(options.file.rfind('/') + 1)
                               : !options.nas_class.empty() ? "NAS class " + options.nas_class
                                                            : "NAS-like";
    const std::int64_t gathered = static_cast<std::int64_t>(sizeof(double)) * partition.largest();
    Report report;
    report.app = "conjugate_gradient";
    report.title = fmt::format(
        "conjugate gradient: {} matrix of {} rows and {} nonzeros on {} ranks, {} x {} steps, {} bytes "
        "gathered from "
        "each rank and step, in {} segments unless blocking; {:g} s slept per nonzero",
        matrix, problem.n, all, job.ranks, method.outer, method.steps, gathered, options.segments,
        options.common.slowdown);
    report.parameters = {{"bytes", gathered},
                         {"ranks", job.ranks},
                         {"matrix", matrix},
                         {"n", problem.n},
                         {"nonzeros", all},
                         {"outer", method.outer},
                         {"steps", method.steps},
                         {"segments", options.segments},
                         {"slowdown", options.common.slowdown}};
    report.checked = fmt::format(
        "residual, solution and zeta against a serial solve, to {:g}{}", options.tolerance,
        as_published ? fmt::format("; zeta against the published one, to {:g}", zeta_tolerance) : "");
    return run_versions(
        job, options.common, static_cast<std::size_t>(options.segments), std::move(report),
        [&](Version version, Books& books) { solver.run(version, books); }, [&] { return solver.check(); });
}

bool solve_all(const Job& job, const GradientOptions& options) {
    NasProblem problem;
    if (!options.nas_class.empty()) {
        if (!find_nas_class(options.nas_class, problem))
            throw BadInput("there is no NAS class " + options.nas_class + "; there are S, W, A, B and C");
        return solve(job, options, problem);
    }
    if (!options.file.empty()) return solve(job, options, {0, 0, 0, 1, 0});
    bool right = true;
    for (const std::int64_t n : options.n.empty() ? std::vector<std::int64_t>{1400} : options.n)
        right &=
            solve(job, options,
                  {n, static_cast<int>(std::min<std::int64_t>(options.nonzeros, n)), options.shift, 1, 0});
    return right;
}

}  // namespace
}  // namespace thalweg::apps

int main(int argc, char** argv) {
    using namespace thalweg::apps;
    CommandLine command_line{
        "The smallest eigenvalue of a sparse matrix by conjugate gradients, checked against a serial solve",
        "conjugate-gradient"};
    GradientOptions options;
    options.add_to(command_line.app());
    return run_program(argc, argv, command_line, options.common,
                       [&](const Job& job) { return solve_all(job, options); });
}
