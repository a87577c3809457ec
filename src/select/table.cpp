#include "select/table.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/float_modes.h"

namespace thalweg {
namespace {

using Json = nlohmann::json;

constexpr std::string_view tables[] = {
#include "select/tables.inc"
};

// Reads fields of one object; the first fault is kept as a sentence.
class Reader {
  public:
    Reader(const Json& object, std::string where) : object_(object), where_(std::move(where)) {}

    void text(const char* field, std::string& to) {
        seen_.push_back(field);
        const auto found = object_.find(field);
        if (found == object_.end()) return;
        if (!found->is_string()) return fault(field, "a text in quotes");
        to = found->get<std::string>();
    }

    void flag(const char* field, bool& to) {
        seen_.push_back(field);
        const auto found = object_.find(field);
        if (found == object_.end()) return;
        if (!found->is_boolean()) return fault(field, "true or false");
        to = found->get<bool>();
    }

    // `scale` turns what is written into what is kept.
    void range(const char* field, Range& to, double scale = 1) {
        seen_.push_back(field);
        const auto found = object_.find(field);
        if (found == object_.end()) return;
        const auto end = [](const Json& value, bool upper) {
            return value.is_number() ? value.get<double>() >= 0 : upper && value.is_null();
        };
        if (!found->is_array() || found->size() != 2 || !end((*found)[0], false) || !end((*found)[1], true))
            return fault(field, "[low, high], where high may be null");
        Range range;
        range.low = value_of((*found)[0], scale);
        if (!(*found)[1].is_null()) range.high = value_of((*found)[1], scale);
        if (range.low > range.high) return fault(field, "[low, high] with low <= high");
        to = range;
    }

    void fault(const char* field, const std::string& expected) {
        if (why_.empty()) why_ = where_ + ": \"" + field + "\" must be " + expected;
    }

    void only_these_and(std::initializer_list<const char*> others) {
        seen_.insert(seen_.end(), others.begin(), others.end());
        for (const auto& [key, value] : object_.items())
            if (std::find(seen_.begin(), seen_.end(), key) == seen_.end() && why_.empty())
                why_ = where_ + ": unknown field \"" + key + "\"";
    }

    const std::string& why() const { return why_; }

  private:
    static std::uint64_t value_of(const Json& value, double scale) {
        if (scale == 1 && value.is_number_unsigned()) return value.get<std::uint64_t>();
        const double scaled = value.get<double>() * scale;
        return scaled < 1.8e19 ? static_cast<std::uint64_t>(std::floor(scaled + 0.5))
                               : std::numeric_limits<std::uint64_t>::max();
    }

    const Json& object_;
    std::string where_;
    std::string why_;
    std::vector<std::string> seen_;
};

Status read_row(const Json& json, const std::string& where, Collective collective, TuningRow& row,
                std::string& why) {
    if (!json.is_object()) {
        why = where + " is not an object";
        return Status::invalid_argument;
    }
    Reader reader(json, where);
    std::string choice, calls, waits, over;
    reader.text("family", row.family);
    reader.text("library", row.library);
    reader.text("calls", calls);
    reader.text("waits", waits);
    reader.text("choice", choice);
    reader.flag("tried", row.tried);
    reader.text("over", over);
    reader.range("hosts", row.hosts);
    reader.range("ppn", row.ppn);
    reader.range("bytes", row.bytes);
    reader.only_these_and({});
    if (choice.empty()) reader.fault("choice", "native or an algorithm");
    if (reader.why().empty() && choice != "native") {
        Choice parsed;
        std::string fault;
        if (failed(parse_choice(collective, choice, parsed, fault)))
            reader.fault("choice", "native or an algorithm: " + fault);
        else
            row.choice = parsed;
    }
    row.neighbours = calls == "neighbours";
    row.persistent = calls == "persistent";
    row.neighbour_plans = calls == "persistent neighbours";
    row.neighbour_calls = calls == "blocking neighbours";
    row.uneven = calls == "uneven";
    const bool in_memory = row.persistent || row.neighbour_plans || row.neighbour_calls;
    const bool by_kind = in_memory || row.neighbours || row.uneven;
    row.blocking = calls != "overlapped" && !by_kind;
    row.overlapped = calls != "blocking" && !by_kind;
    if (!calls.empty() && row.blocking && row.overlapped)
        reader.fault("calls",
                     "blocking, overlapped, persistent, neighbours, persistent neighbours, blocking "
                     "neighbours or uneven");
    if (in_memory && (collective != Collective::alltoallv || row.hosts.low != 1 || row.hosts.high != 1))
        reader.fault("calls", "not " + calls + " but of alltoallv on one host");
    row.spinning = waits != "sleep";
    row.sleeping = waits != "spin";
    if (!waits.empty() && row.spinning && row.sleeping) reader.fault("waits", "spin or sleep");
    if (!waits.empty() && calls != "blocking" && !in_memory)
        reader.fault("waits", "left out but where calls is blocking or persistent");
    if ((row.neighbours || row.neighbour_plans || row.neighbour_calls || row.uneven) &&
        (collective != Collective::alltoallv || (row.choice && !goes_straight(*row.choice))))
        reader.fault("calls", std::string("not ") + (row.uneven ? "uneven" : "neighbours") +
                                  " but of alltoallv by spread, pairwise, notify or natively");
    const bool takes_turns =
        row.neighbour_calls ||
        (calls == "blocking" && (collective == Collective::bcast || collective == Collective::alltoallv));
    if (row.tried && !(takes_turns && row.choice))
        reader.fault("tried",
                     "left out but where calls is blocking, of bcast or alltoallv, or blocking neighbours, "
                     "and the choice not native");
    // Nobody knows what such a call is like before it is made.
    if (row.neighbour_calls && row.choice && !row.tried)
        reader.fault("tried", "true where calls is blocking neighbours and the choice not native");
    row.over_library = over == "mpi";
    row.only_in_memory = over == "shm";
    const bool says_over = row.over_library || row.only_in_memory;
    if (!over.empty() && !(says_over && row.tried && collective == Collective::bcast))
        reader.fault("over", "mpi or shm, or left out but where a broadcast is tried");
    why = reader.why();
    return why.empty() ? Status::ok : Status::invalid_argument;
}

}  // namespace

std::span<const std::string_view> built_in_tables() { return tables; }

bool speaks_for(const TuningTable& table, const Level& links) {
    return table.latency_ps.has(links.latency) && table.bytes_per_second.has(links.bytes_per_second) &&
           table.ports.has(std::max<std::uint64_t>(links.ports, 1));
}

bool speaks_of(const TuningRow& row, std::string_view family, std::string_view library) {
    if (!row.family.empty() && row.family != family) return false;
    std::size_t at = 0;
    for (const char wanted : row.library) {
        if (at == library.size() || library[at] != wanted) return false;
        ++at;
        while (wanted == ' ' && at < library.size() && library[at] == ' ') ++at;
    }
    return true;
}

bool fits(const TuningRow& row, const Topology& topology) {
    return row.hosts.has(static_cast<std::uint64_t>(topology.nodes())) &&
           row.ppn.has(static_cast<std::uint64_t>(topology.max_ranks_per_node()));
}

bool goes_straight(const Choice& choice) {
    const std::string_view name = choice.algorithm->name;
    return name == "spread" || name == "pairwise" || name == "notify";
}

namespace {

// As the parser says it, "parse error at line 3, column 7: ...", without the name of its exception.
std::string what_is_broken(const Json::exception& error) {
    std::string text = error.what();
    text.erase(0, std::min(text.find("] "), text.size() - 2) + 2);
    for (char& letter : text)  // it quotes what it read
        if (letter < ' ' || letter > '~') letter = '?';
    return text;
}

// `place`: "table 2" of a list; empty where it stands alone. Pre: `json` is an object.
Status read_table(const Json& json, const std::string& place, TuningTable& table, std::string& why) {
    TuningTable result;
    std::string collective;
    Reader reader(json, place.empty() ? "tuning table" : place);
    reader.text("collective", collective);
    reader.text("machine", result.machine);
    reader.text("date", result.date);
    reader.text("method", result.method);
    reader.text("commit", result.commit);
    reader.range("latency_us", result.latency_ps, 1e6);
    reader.range("rate_mbit", result.bytes_per_second, 1e6 / 8);
    reader.range("ports", result.ports);
    reader.only_these_and({"rows"});
    std::string known;
    for (int i = 0; i < collective_count; ++i) {
        const auto one = static_cast<Collective>(i);
        if (name_of(one) == collective) result.collective = one;
        known += (i == 0 ? "\"" : ", \"") + std::string(name_of(one)) + "\"";
    }
    if (collective != name_of(result.collective)) reader.fault("collective", "one of " + known);
    const auto rows = json.find("rows");
    if (rows == json.end() || !rows->is_array()) reader.fault("rows", "a list");
    if (!reader.why().empty()) {
        why = reader.why();
        return Status::invalid_argument;
    }
    for (std::size_t i = 0; i < rows->size(); ++i) {
        TuningRow row;
        const std::string where = (place.empty() ? "row " : place + ", row ") + std::to_string(i + 1);
        if (failed(read_row((*rows)[i], where, result.collective, row, why))) return Status::invalid_argument;
        result.rows.push_back(std::move(row));
    }
    table = std::move(result);
    return Status::ok;
}

Status parsed(std::string_view text, std::vector<TuningTable>& tables, std::string& why) {
    Json json;
    std::string broken;
    try {
        json = Json::parse(text, nullptr, true, true);
    } catch (const Json::exception& error) {
        broken = "; " + what_is_broken(error);
    }
    std::vector<TuningTable> result;
    if (json.is_object()) {
        result.emplace_back();
        if (failed(read_table(json, "", result.back(), why))) return Status::invalid_argument;
    } else if (!json.is_array() || json.empty()) {
        why =
            "a tuning table is a JSON object with the fields collective and rows, or a list of such" + broken;
        return Status::invalid_argument;
    } else {
        for (const Json& each : json) {
            const std::string place = "table " + std::to_string(result.size() + 1);
            result.emplace_back();
            if (!each.is_object()) why = place + " is not an object";
            if (!each.is_object() || failed(read_table(each, place, result.back(), why)))
                return Status::invalid_argument;
        }
    }
    tables = std::move(result);
    return Status::ok;
}

}  // namespace

Status parse_tables(std::string_view text, std::vector<TuningTable>& tables, std::string& why) {
    return with_texts_in_standard_modes([&] { return parsed(text, tables, why); });
}

std::vector<TuningTable> tables_in(std::string_view json) {
    std::vector<TuningTable> read;
    std::string why;
    if (!json.empty()) parse_tables(json, read, why);
    return read;
}

const std::vector<TuningTable>& built_in_tuning() {
    static const auto* const read = [] {
        auto all = std::make_unique<std::vector<TuningTable>>();
        for (std::string_view json : tables)
            for (TuningTable& table : tables_in(json)) all->push_back(std::move(table));
        return all.release();
    }();
    return *read;
}

}  // namespace thalweg
