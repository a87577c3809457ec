// Fourier transforms of one dimension: against the definition, and there and back.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <random>
#include <vector>

#include "fourier/fft.h"

namespace {

std::vector<fft_complex> random_line(std::size_t n) {
    std::mt19937 random(static_cast<unsigned>(n));
    std::uniform_real_distribution<double> any(-1, 1);
    std::vector<fft_complex> line(n);
    for (auto& value : line) value = {any(random), any(random)};
    return line;
}

TEST(Fourier, IsItsDefinition) {
    for (const std::size_t n : {1, 2, 3, 4, 5, 8, 12, 16, 64})
        for (const int sign : {-1, 1}) {
            const auto line = random_line(n);
            auto transformed = line;
            fft_plan* const plan = fft_make(n);
            ASSERT_NE(plan, nullptr);
            fft_line(plan, transformed.data(), 1, sign);
            fft_free(plan);
            for (std::size_t k = 0; k < n; ++k) {
                std::complex<long double> sum = 0;
                for (std::size_t j = 0; j < n; ++j)
                    sum += std::complex<long double>(line[j].re, line[j].im) *
                           std::polar<long double>(1, sign * 2 * std::acos(-1.0L) *
                                                          static_cast<long double>(j * k) /
                                                          static_cast<long double>(n));
                EXPECT_NEAR(transformed[k].re, static_cast<double>(sum.real()), 1e-12 * n) << n << ' ' << k;
                EXPECT_NEAR(transformed[k].im, static_cast<double>(sum.imag()), 1e-12 * n) << n << ' ' << k;
            }
        }
}

TEST(Fourier, ThereAndBackWithStride) {
    const std::size_t n = 16, stride = 3;
    auto line = random_line(n * stride);
    const auto before = line;
    fft_plan* const plan = fft_make(n);
    fft_line(plan, line.data(), stride, -1);
    fft_line(plan, line.data(), stride, 1);
    fft_free(plan);
    for (std::size_t i = 0; i < n * stride; ++i) {
        const double scale = i % stride == 0 ? static_cast<double>(n) : 1;  // others are not touched
        EXPECT_NEAR(line[i].re, scale * before[i].re, 1e-13 * scale);
        EXPECT_NEAR(line[i].im, scale * before[i].im, 1e-13 * scale);
    }
}

TEST(Fourier, BlocksCoverEverythingEvenly) {
    for (const std::size_t n : {0, 1, 3, 8, 13})
        for (int parts = 1; parts <= 6; ++parts) {
            EXPECT_EQ(block_begin(n, parts, 0), 0u);
            EXPECT_EQ(block_begin(n, parts, parts), n);
            for (int i = 0; i < parts; ++i) {
                const std::size_t items = block_begin(n, parts, i + 1) - block_begin(n, parts, i);
                EXPECT_GE(items, n / static_cast<std::size_t>(parts));
                EXPECT_LE(items, n / static_cast<std::size_t>(parts) + 1);
            }
        }
}

TEST(Fourier, OfNothingThereIsNone) { EXPECT_EQ(fft_make(0), nullptr); }

}  // namespace
