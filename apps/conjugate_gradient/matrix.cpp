#include "conjugate_gradient/matrix.h"

#include <algorithm>

namespace thalweg::apps {

void Rows::reserve(std::size_t rows, std::size_t entries) {
    start.reserve(rows + 1);
    column.reserve(entries);
    value.reserve(entries);
}

void multiply(const Rows& rows, const double* x, double* y, std::size_t begin, std::size_t end, bool add) {
    for (std::size_t row = begin; row < end; ++row) {
        double sum = add ? y[row] : 0;
        const auto last = static_cast<std::size_t>(rows.start[row + 1]);
        for (auto i = static_cast<std::size_t>(rows.start[row]); i < last; ++i)
            sum += rows.value[i] * x[rows.column[i]];
        y[row] = sum;
    }
}

Rows rows_of(std::vector<Entry> entries, std::int64_t begin, std::int64_t end) {
    std::erase_if(entries, [&](const Entry& entry) { return entry.row < begin || entry.row >= end; });
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
        return a.row != b.row ? a.row < b.row : a.column < b.column;
    });
    Rows rows;
    rows.reserve(static_cast<std::size_t>(end - begin), entries.size());
    std::size_t at = 0;
    for (std::int64_t row = begin; row < end; ++row) {
        for (; at < entries.size() && entries[at].row == row; ++at) {
            const bool again = static_cast<std::int64_t>(rows.column.size()) > rows.start.back() &&
                               rows.column.back() == entries[at].column;
            if (again) {
                rows.value.back() += entries[at].value;
            } else {
                rows.column.push_back(entries[at].column);
                rows.value.push_back(entries[at].value);
            }
        }
        rows.end_row();
    }
    return rows;
}

SplitRows split(const Rows& rows, Partition partition, int me, int segments) {
    SplitRows result;
    result.segments = segments;
    result.segment_length = std::max<std::int64_t>(1, (partition.largest() + segments - 1) / segments);
    result.parts.resize(static_cast<std::size_t>(segments) + 1);
    for (std::size_t row = 0; row < rows.count(); ++row) {
        for (auto i = rows.start[row]; i < rows.start[row + 1]; ++i) {
            const std::int32_t column = rows.column[static_cast<std::size_t>(i)];
            const int owner = partition.owner(column);
            const std::int64_t offset = column - partition.begin(owner);
            std::int64_t place = offset;
            std::size_t part = 0;
            if (owner != me) {
                part = static_cast<std::size_t>(offset / result.segment_length) + 1;
                place = owner * result.segment_length + offset % result.segment_length;
            }
            result.parts[part].column.push_back(static_cast<std::int32_t>(place));
            result.parts[part].value.push_back(rows.value[static_cast<std::size_t>(i)]);
        }
        for (auto& part : result.parts) part.end_row();
    }
    return result;
}

}  // namespace thalweg::apps
