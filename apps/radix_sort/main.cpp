// Sorts integers that are spread over the ranks, least significant digit first. In every pass each rank
// counts its digits, the counts of all ranks are gathered, and meanwhile the rank sorts its own keys by the
// digit, for which its own counts are enough. Then everybody knows every key's position, and the keys are
// exchanged.
//
// Plain MPI. The allgather of 4 * 2^bits bytes per rank is what may be hidden behind the local sort, as in
// Inozemtsev and Afsahi, CLUSTER 2012; the exchange of the keys is not.
#include <fmt/format.h>
#include <mpi.h>

#include <limits>

#include "common/program.h"
#include "radix_sort/digits.h"
#include "radix_sort/keys.h"
#include "radix_sort/options.h"

namespace thalweg::apps {
namespace {

template <class Key>
MPI_Datatype type_of() {
    return sizeof(Key) == 4 ? MPI_UINT32_T : MPI_UINT64_T;
}

template <class Key>
class Sort {
  public:
    Sort(const Job& job, const SortOptions& options, std::uint64_t count, Input input)
        : job_(job),
          options_(options),
          input_(input),
          partition_{static_cast<std::int64_t>(count), job.ranks} {
        const auto own = static_cast<std::size_t>(partition_.count(job_.rank));
        original_.resize(own);
        for (std::size_t i = 0; i < own; ++i)
            original_[i] = make_key<Key>(input_, static_cast<std::uint64_t>(partition_.begin(job_.rank)) + i,
                                         count, options_.seed);
        before_ = over_ranks(fingerprint(original_.data(), own));
        sorted_.resize(own);
    }

    void run(Version version, Books& books) {
        keys_ = original_;
        std::vector<std::uint32_t> all;
        for (const Digit digit : digits(options_.key_bits, options_.digit_bits)) {
            std::vector<std::uint32_t> counts;
            books.compute([&] {
                counts = histogram(keys_.data(), keys_.size(), digit);
                all.resize(digit.buckets() * static_cast<std::size_t>(job_.ranks));
            });
            HiddenAllgather gather(version, job_.comm, books);
            gather.begin(0, counts.data(), static_cast<int>(counts.size()), MPI_UINT32_T, all.data());
            SortByDigit<Key> local(keys_.data(), sorted_.data(), digit, counts);
            gather.beside(keys_.size(), options_.common.slowdown * static_cast<double>(keys_.size()),
                          [&](std::size_t begin, std::size_t end) { local.place(begin, end); });
            gather.end();
            Exchange exchange;
            books.compute([&] { exchange = plan_exchange(all, digit.buckets(), partition_, job_.rank); });
            books.communicate([&] {
                MPI_Alltoallv(sorted_.data(), exchange.send_counts.data(), exchange.send_at.data(),
                              type_of<Key>(), keys_.data(), exchange.receive_counts.data(),
                              exchange.receive_at.data(), type_of<Key>(), job_.comm);
            });
            // What came is in order of the senders; a stable sort by the digit makes it the order of
            // positions.
            books.compute([&] {
                SortByDigit<Key> received(keys_.data(), sorted_.data(), digit,
                                          histogram(keys_.data(), keys_.size(), digit));
                received.place(0, keys_.size());
                keys_.swap(sorted_);
            });
        }
    }

    std::string check() {
        if (options_.common.damage && partition_.items > 0 &&
            partition_.owner(partition_.items / 2) == job_.rank)
            keys_[keys_.size() / 2] ^= 1;
        if (over_ranks(fingerprint(keys_.data(), keys_.size())) != before_)
            return "the keys after the sort are not those before it";
        // Keys are unsigned: nothing is below rank 0's lower bound of 0, and empty ranks do not raise it.
        Key last = keys_.empty() ? 0 : keys_.back(), lower = 0;
        MPI_Exscan(&last, &lower, 1, type_of<Key>(), MPI_MAX, job_.comm);
        if (job_.rank == 0) lower = 0;
        if (!everywhere(in_order(keys_.data(), keys_.size(), lower))) return "the keys are not in order";
        return !serial() || everywhere(as_serial()) ? "" : "the keys are not those of a serial sort";
    }

    std::string checked() const {
        return fmt::format(
            "order on and across ranks, the multiset of keys by its count, sum and three hashes{}",
            serial() ? ", and every key against a serial sort" : "");
    }

  private:
    bool serial() const {
        return static_cast<std::uint64_t>(partition_.items) <= options_.serial_bytes / sizeof(Key);
    }

    bool as_serial() const {
        std::vector<int> counts, at;
        for (int rank = 0; rank < job_.ranks; ++rank) {
            counts.push_back(static_cast<int>(partition_.count(rank)));
            at.push_back(static_cast<int>(partition_.begin(rank)));
        }
        std::vector<Key> all(job_.rank == 0 ? static_cast<std::size_t>(partition_.items) : 0);
        MPI_Gatherv(keys_.data(), static_cast<int>(keys_.size()), type_of<Key>(), all.data(), counts.data(),
                    at.data(), type_of<Key>(), 0, job_.comm);
        return job_.rank != 0 || equals_serial_sort(all.data(), all.size(), input_, options_.seed);
    }

    bool everywhere(bool here) const {
        int mine = here, all = 0;
        MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, job_.comm);
        return all != 0;
    }

    Fingerprint over_ranks(const Fingerprint& mine) const {
        Fingerprint all;
        MPI_Allreduce(mine.sum, all.sum, Fingerprint::sums, MPI_UINT64_T, MPI_SUM, job_.comm);
        MPI_Allreduce(&mine.exclusive_or, &all.exclusive_or, 1, MPI_UINT64_T, MPI_BXOR, job_.comm);
        return all;
    }

    const Job& job_;
    const SortOptions& options_;
    Input input_;
    Partition partition_;
    std::vector<Key> original_, keys_, sorted_;
    Fingerprint before_;
};

template <class Key>
bool sort(const Job& job, const SortOptions& options, std::uint64_t count, const std::string& input_name) {
    Input input;
    if (!parse_input(input_name, input))
        throw BadInput("there is no input " + input_name + "; there are " + all_inputs());
    const std::uint64_t most = static_cast<std::uint64_t>(std::numeric_limits<int>::max());
    if (static_cast<std::uint64_t>(Partition{static_cast<std::int64_t>(count), job.ranks}.largest()) > most)
        throw BadInput(
            fmt::format("{} keys on {} ranks are more than the {} per rank that MPI_Alltoallv can count",
                        count, job.ranks, most));
    Sort<Key> sorter(job, options, count, input);
    const std::size_t passes = digits(options.key_bits, options.digit_bits).size();
    Report report;
    report.app = "radix_sort";
    report.title = fmt::format(
        "radix sort: {} {} keys of {} bits on {} ranks, {} passes of {} bits, {} bytes gathered from each "
        "rank and "
        "pass; {:g} s slept per key and pass",
        count, input_name, options.key_bits, job.ranks, passes, options.digit_bits,
        sizeof(std::uint32_t) << options.digit_bits, options.common.slowdown);
    report.parameters = {{"bytes", sizeof(std::uint32_t) << options.digit_bits},
                         {"ranks", job.ranks},
                         {"keys", count},
                         {"input", input_name},
                         {"key-bits", options.key_bits},
                         {"digit-bits", options.digit_bits},
                         {"seed", options.seed},
                         {"slowdown", options.common.slowdown}};
    report.checked = sorter.checked();
    return run_versions(
        job, options.common, 1, std::move(report),
        [&](Version version, Books& books) { sorter.run(version, books); }, [&] { return sorter.check(); });
}

}  // namespace
}  // namespace thalweg::apps

int main(int argc, char** argv) {
    using namespace thalweg::apps;
    CommandLine command_line{"Sorts integers that are spread over the ranks, by radix, and checks the result",
                             "radix-sort"};
    SortOptions options;
    options.add_to(command_line.app());
    return run_program(argc, argv, command_line, options.common, [&](const Job& job) {
        bool right = true;
        for (const auto& input : options.inputs)
            for (const std::uint64_t count : options.keys)
                right &= options.key_bits == 32 ? sort<std::uint32_t>(job, options, count, input)
                                                : sort<std::uint64_t>(job, options, count, input);
        return right;
    });
}
