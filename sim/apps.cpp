#include "sim/apps.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/mixing.h"
#include "select/exchanges.h"
#include "sim/halo.h"

namespace thalweg::sim {
namespace {

constexpr std::string_view names[] = {"stencil", "amr", "sort", "cg", "fourier"};
constexpr double cell_bytes = 8;

class Writer {
  public:
    explicit Writer(double sweep) : sweep_(sweep) {}

    void compute(double swept_bytes) { app_.phases.push_back({ActKind::compute, 0, swept_bytes / sweep_}); }
    std::size_t start(const Call& call) {
        app_.calls.push_back(call);
        app_.phases.push_back({ActKind::start, app_.calls.size() - 1, 0});
        return app_.calls.size() - 1;
    }
    void wait(std::size_t call) { app_.phases.push_back({ActKind::wait, call, 0}); }
    App finish() && { return std::move(app_); }

  private:
    double sweep_;
    App app_;
};

Call collective(Collective what, std::uint64_t bytes) { return {what, bytes, false, -1, false}; }
Call scalar_product() { return {Collective::allreduce, sizeof(double), false, -1, false, true}; }

// A face of a cube of cells says how large the cube is.
double cube_bytes(double face) { return face * std::sqrt(face / cell_bytes); }

void stencil(Writer& write, std::uint64_t face) {
    const double cube = cube_bytes(static_cast<double>(face));
    const double shell = std::min(cube, 6.0 * static_cast<double>(face));
    const std::size_t faces = write.start({Collective::alltoallv, face, true, -1, false});
    write.compute(cube - shell);
    write.wait(faces);
    write.compute(shell);
}

void amr(Writer& write, std::uint64_t face) {
    for (const int axis : {0, 1, 2}) {
        write.compute(2.0 * static_cast<double>(face));  // packed, both sides
        write.wait(write.start({Collective::alltoallv, face, true, axis, true}));
        write.compute(2.0 * static_cast<double>(face));
    }
    write.compute(cube_bytes(static_cast<double>(face)));
}

void sort(Writer& write, int ranks, std::uint64_t keys) {
    constexpr std::uint64_t counts = 256 * 4;  // of a digit of eight bits
    const auto all = static_cast<double>(keys);
    write.compute(all / 2);  // read to be counted, not written
    const std::size_t counted = write.start(collective(Collective::allgather, counts));
    write.compute(all);  // own keys by digit
    write.wait(counted);
    write.compute(static_cast<double>(counts) * ranks / 2);
    const auto group = static_cast<std::uint64_t>(ranks);
    write.wait(write.start(collective(Collective::alltoallv, std::max<std::uint64_t>(keys / group, 1))));
}

void cg(Writer& write, std::uint64_t vector) {
    constexpr double row_bytes = 27 * 12.0;  // values and their columns, read only
    const double product = static_cast<double>(vector) / cell_bytes * row_bytes / 2;
    const std::size_t gathered = write.start(collective(Collective::allgather, vector));
    write.compute(product / 2);
    write.wait(gathered);
    write.compute(product / 2);
    write.wait(write.start(scalar_product()));
    write.compute(3.0 * static_cast<double>(vector));  // three vectors are updated
    write.wait(write.start(scalar_product()));
}

void fourier(Writer& write, int ranks, std::uint64_t bytes) {
    const std::uint64_t half = std::max<std::uint64_t>(bytes / 2, 1);
    const double transforms = 5.0 * static_cast<double>(half) * ranks;  // passes over half of the own data
    write.compute(transforms);
    const std::size_t first = write.start(collective(Collective::alltoallv, half));
    write.compute(transforms);
    write.wait(first);
    const std::size_t second = write.start(collective(Collective::alltoallv, half));
    write.compute(transforms);
    write.wait(second);
    write.compute(transforms);
}

// A quarter of the ranks, drawn by the seed.
bool refined(int rank, std::uint64_t seed) {
    return mixed((static_cast<std::uint64_t>(rank) + 1) * golden_step + seed) >> 62 == 0;
}

}  // namespace

std::span<const std::string_view> app_names() { return names; }

double App::compute_seconds() const {
    double sum = 0;
    for (const Phase& phase : phases) sum += phase.seconds;
    return sum;
}

App make_app(std::string_view name, int ranks, std::uint64_t bytes, double sweep) {
    Writer write(sweep);
    if (name == "stencil") stencil(write, bytes);
    if (name == "amr") amr(write, bytes);
    if (name == "sort") sort(write, ranks, bytes);
    if (name == "cg") cg(write, bytes);
    if (name == "fourier") fourier(write, ranks, bytes);
    return std::move(write).finish();
}

Exchange faces_of_call(const Call& call, int rank, int ranks, std::uint64_t seed) {
    const std::array<int, 3> grid = grid_of(ranks);
    const std::array<int, 3> stride = {grid[1] * grid[2], grid[2], 1};
    Exchange chosen;
    std::uint64_t offset = 0;
    for (Parcel face : faces_of(rank, grid, call.bytes).outgoing) {
        const int distance = std::abs(face.peer - rank);
        int axis = 0;
        while (axis < 2 && (grid[static_cast<std::size_t>(axis)] == 1 ||
                            stride[static_cast<std::size_t>(axis)] != distance))
            ++axis;
        if (call.axis >= 0 && call.axis != axis) continue;
        if (call.refined && refined(rank, seed) && refined(face.peer, seed)) face.bytes *= 4;
        face.offset = offset;
        offset += face.bytes;
        chosen.outgoing.push_back(face);
    }
    chosen.incoming = chosen.outgoing;
    return chosen;
}

std::uint64_t largest_face(const Call& call, int ranks, std::uint64_t seed) {
    std::uint64_t largest = 0;
    for (int rank = 0; rank < ranks; ++rank)
        for (const Parcel& face : faces_of_call(call, rank, ranks, seed).outgoing)
            largest = std::max(largest, face.bytes);
    return largest;
}

Traits traits_of_faces(const Call& call, const Topology& topology, std::uint64_t seed) {
    const int ranks = topology.size();
    TraitWords words{};
    for (int rank = 0; rank < ranks; ++rank) {
        const Exchange own = faces_of_call(call, rank, ranks, seed);
        count_exchange(words, own.outgoing, own.incoming, rank, ranks, topology);
    }
    return traits_of(words, ranks);
}

}  // namespace thalweg::sim
