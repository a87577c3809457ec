#include "common/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

namespace thalweg::apps {

void Job::agree(const std::string& why) const {
    int length = static_cast<int>(why.size());
    MPI_Bcast(&length, 1, MPI_INT, 0, comm);
    if (length == 0) return;
    std::string text = rank == 0 ? why : std::string(static_cast<std::size_t>(length), ' ');
    MPI_Bcast(text.data(), length, MPI_CHAR, 0, comm);
    throw BadInput(text);
}

bool run_versions(const Job& job, const CommonOptions& options, std::size_t stages, Report report,
                  const std::function<void(Version, Books&)>& one_run,
                  const std::function<std::string()>& check) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(version, &length);
    report.library = std::string(version).substr(0, std::string(version).find('\n'));
    report.series.clear();
    for (const Version& version : options.versions) report.series.push_back({version.name(), {}, {}});
    std::vector<std::size_t> order(options.versions.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (int run = -options.warm_up; run < options.repeat; ++run) {
        for (const std::size_t i : order) {
            Books books(options.versions[i].style == Style::blocking ? 1 : stages, stages);
            MPI_Barrier(job.comm);
            const double begin = now();
            one_run(options.versions[i], books);
            const double total = now() - begin;
            const Sample sample = books.over_ranks(total, job.comm);
            if (run >= 0) report.series[i].samples.push_back(sample);
            const std::string wrong = check();
            if (report.series[i].wrong.empty()) report.series[i].wrong = wrong;
        }
        // Nobody runs always after the same neighbour's heat.
        std::rotate(order.begin(), order.begin() + (order.empty() ? 0 : 1), order.end());
    }
    std::string why;
    if (job.rank == 0) {
        fmt::print("{}\n", format_report(report));
        std::fflush(stdout);
        if (!options.json.empty()) append_to(options.json, json_lines(report), why);
    }
    job.agree(why);
    return report.correct();
}

int run_program(int argc, char** argv, CommandLine& command_line, CommonOptions& options,
                const std::function<bool(const Job&)>& work) {
    MPI_Init(&argc, &argv);
    sharpen_sleep();
    Job job;
    MPI_Comm_dup(MPI_COMM_WORLD, &job.comm);
    MPI_Comm_rank(job.comm, &job.rank);
    MPI_Comm_size(job.comm, &job.ranks);
    int status = 0;
    try {
        const CommandLine::Answer answer = command_line.parse(argc, argv);
        if (answer.kind == CommandLine::Answer::Kind::mistake) throw BadInput(answer.text);
        if (answer.kind == CommandLine::Answer::Kind::help) {
            if (job.rank == 0) fmt::print("{}", answer.text);
        } else {
            std::string why;
            if (!parse_versions(options.version_names, options.pieces, options.versions, why))
                throw BadInput(why);
            if (job.rank == 0 && !options.json.empty()) append_to(options.json, "", why);
            job.agree(why);
            status = work(job) ? 0 : 1;
        }
    } catch (const BadInput& error) {
        if (job.rank == 0) fmt::print(stderr, "{}: {}\n", command_line.name(), error.what());
        status = 2;
    } catch (const std::bad_alloc&) {
        // This rank alone knows, and the others may be waiting for it.
        fmt::print(stderr, "{}: rank {} has not enough memory for this problem\n", command_line.name(),
                   job.rank);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Comm_free(&job.comm);
    MPI_Finalize();
    return status;
}

}  // namespace thalweg::apps
