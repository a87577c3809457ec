#include "common/hidden_allgather.h"

namespace thalweg::apps {

Sample Books::over_ranks(double total, MPI_Comm comm) const {
    int ranks = 1;
    MPI_Comm_size(comm, &ranks);
    Sample sample = sums_;
    const std::size_t gathers = sample.gathers.size();
    std::vector<double> mine{sample.communication, sample.compute, sample.visible};
    mine.insert(mine.end(), sample.gathers.begin(), sample.gathers.end());
    mine.insert(mine.end(), sample.windows.begin(), sample.windows.end());
    std::vector<double> sums(mine.size());
    MPI_Allreduce(mine.data(), sums.data(), static_cast<int>(mine.size()), MPI_DOUBLE, MPI_SUM, comm);
    MPI_Allreduce(&total, &sample.total, 1, MPI_DOUBLE, MPI_MAX, comm);
    for (auto& sum : sums) sum /= ranks;
    sample.communication = sums[0];
    sample.compute = sums[1];
    sample.visible = sums[2];
    for (std::size_t i = 0; i < gathers; ++i) sample.gathers[i] = sums[3 + i];
    for (std::size_t i = 0; i < sample.windows.size(); ++i) sample.windows[i] = sums[3 + gathers + i];
    return sample;
}

}  // namespace thalweg::apps
