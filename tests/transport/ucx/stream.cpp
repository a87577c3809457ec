// How fast, and for how much CPU: a stream of large messages from rank 0 to rank 1, both sleeping while they
// wait.
#include "job.h"

namespace thalweg::test {

UCX_CASE(stream) {
    UcxOptions options;
    options.host_key = static_cast<std::uint64_t>(job.rank());
    if (arguments.contains("tls")) options.transports = arguments.at("tls");
    if (number(arguments, "rails", 0) != 0) {
        options.devices = ucx_devices();
        REQUIRE(options.devices.size() == number(arguments, "rails", 0));
    }
    Node node(job, options);
    const auto channel = node.channel({0, 0});
    const std::size_t bytes = number(arguments, "bytes", 4u << 20);
    const auto count = static_cast<std::uint32_t>(number(arguments, "count", 8));
    const Bytes data = pattern(bytes, 3);
    Bytes received[2] = {Bytes(bytes), Bytes(bytes)};
    const auto post = [&](std::uint32_t i) {
        const MessageId id{i, 0};
        REQUIRE((job.rank() == 0
                     ? channel->post_send(i % 2, 1, id, data.data(), bytes, SendMode::buffered)
                     : channel->post_recv(i % 2, 0, id, received[i % 2].data(), bytes)) == Status::ok);
    };
    double begin = 0, cpu = 0;
    int sleeps = 0;
    // The first message connects, and is not counted. Then two are always under way.
    for (std::uint32_t i = 0; i <= count + 1; ++i) {
        if (i <= count) post(i);
        if (i == 0) {
            finish_sleeping(*channel, 1);
            job.barrier();
            begin = seconds_now();
            cpu = cpu_seconds();
        } else if (i >= 2) {
            finish_sleeping(*channel, 1, &sleeps);
        }
    }
    const double elapsed = seconds_now() - begin, used = cpu_seconds() - cpu;
    if (job.rank() == 1) REQUIRE(is_pattern(received[0], 3) && is_pattern(received[1], 3));
    const double rate = static_cast<double>(bytes) * count / elapsed;
    const char* line = std::getenv("THALWEG_LAB_RATE_BYTES_PER_S");
    std::printf("rank %d: %s: %u x %zu bytes, %.2f MB/s", job.rank(),
                (node.port ? node.port->description() : node.shm->description()), count, bytes, 1e-6 * rate);
    if (line) std::printf(" (%.1f %% of a rail's rate)", 100 * rate / std::atof(line));
    std::printf(", %.1f %% of a core, %d sleeps in %.2f s\n", 100 * used / elapsed, sleeps, elapsed);
    job.barrier();
}

}  // namespace thalweg::test
