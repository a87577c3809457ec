#include <array>

#include "algorithms/algorithm.h"

// Each row's functions, defined in its own file.
#define PARAMETERS(...)
#define PARTS(...)
#define ALGORITHM(collective, name, parameters, parts, summary, price_text, source) \
    namespace thalweg::collective::name {                                           \
    std::string_view refuse(const Problem&, const Topology&, const Choice&);        \
    Schedule build(const Problem&, const Topology&, const Choice&);                 \
    Claim claim(const Problem&, const Topology&, const Choice&);                    \
    Price price(const Problem&, const Topology&, const Choice&);                    \
    }
#include "algorithms/algorithms.def"
#undef ALGORITHM
#undef PARAMETERS
#undef PARTS

namespace thalweg {
namespace {

template <typename Item, typename... Items>
constexpr std::array<Item, sizeof...(Items)> list_of(Items... items) {
    return {items...};
}

#define PARAMETERS(...) __VA_ARGS__
#define PARAMETER(...) \
    Parameter { __VA_ARGS__ }
#define PARTS(...) __VA_ARGS__
#define PART(part_name, part_collective, standard) \
    Part { part_name, Collective::part_collective, standard }
#define ALGORITHM(collective, name, parameters, parts, summary, price_text, source)   \
    constexpr auto collective##_##name##_parameters = list_of<Parameter>(parameters); \
    constexpr auto collective##_##name##_parts = list_of<Part>(parts);                \
    static_assert(collective##_##name##_parameters.size() <= max_parameters);
#include "algorithms/algorithms.def"
#undef ALGORITHM

#define ALGORITHM(collective, name, parameters, parts, summary, price_text, source) \
    Algorithm{Collective::collective,                                               \
              #name,                                                                \
              summary,                                                              \
              price_text,                                                           \
              source,                                                               \
              collective##_##name##_parameters,                                     \
              collective##_##name##_parts,                                          \
              thalweg::collective::name::refuse,                                    \
              thalweg::collective::name::build,                                     \
              thalweg::collective::name::claim,                                     \
              thalweg::collective::name::price},
constexpr Algorithm rows[] = {
#include "algorithms/algorithms.def"
};
#undef ALGORITHM

#define TWIN(collective, family, native, choice, differs) \
    Twin{Collective::collective, family, native, choice, differs},
constexpr Twin twin_rows[] = {
#include "algorithms/natives.def"
};
#undef TWIN

}  // namespace

std::string_view name_of(Collective collective) {
    switch (collective) {
        case Collective::bcast:
            return "bcast";
        case Collective::allgather:
            return "allgather";
        case Collective::allreduce:
            return "allreduce";
        case Collective::barrier:
            return "barrier";
        case Collective::alltoallv:
            return "alltoallv";
    }
    return "";
}

std::span<const Algorithm> algorithms() { return rows; }
std::span<const Twin> twins() { return twin_rows; }

const Algorithm* find_algorithm(Collective collective, std::string_view name) {
    for (const Algorithm& row : rows)
        if (row.collective == collective && row.name == name) return &row;
    return nullptr;
}

Choice standard_choice(const Algorithm& algorithm) {
    Choice choice;
    choice.algorithm = &algorithm;
    for (std::size_t i = 0; i < algorithm.parameters.size(); ++i)
        choice.values[i] = algorithm.parameters[i].standard;
    for (const Part& part : algorithm.parts)
        choice.parts.push_back(standard_choice(*find_algorithm(part.collective, part.standard)));
    return choice;
}

std::string_view refuse(const Choice& choice, const Problem& problem, const Topology& topology) {
    return choice.algorithm->refuse(problem, topology, choice);
}
Schedule build(const Choice& choice, const Problem& problem, const Topology& topology) {
    return choice.algorithm->build(problem, topology, choice);
}
Claim claim(const Choice& choice, const Problem& problem, const Topology& topology) {
    return choice.algorithm->claim(problem, topology, choice);
}

}  // namespace thalweg
