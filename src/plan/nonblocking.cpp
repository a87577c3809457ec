#include "plan/nonblocking.h"

#include <algorithm>
#include <new>

#include "base/clock.h"
#include "engine/channel.h"
#include "plan/attendance.h"
#include "plan/blocking_exchange.h"
#include "plan/declining.h"
#include "plan/direct.h"
#include "plan/exchange_decision.h"
#include "plan/failure.h"
#include "plan/freeing.h"
#include "plan/kept_exchange.h"
#include "plan/last_call.h"
#include "plan/native_plan.h"
#include "plan/neighbours.h"
#include "plan/plan_request.h"
#include "plan/planned_in_memory.h"
#include "plan/quiet_errors.h"
#include "plan/refusals.h"
#include "plan/reserve.h"
#include "plan/set_up.h"
#include "plan/window_plan.h"
#include "transport/mpi/error_handler.h"
#include "transport/mpi/host.h"

namespace thalweg {

namespace {

std::uint64_t largest_of(const Letters& letters) {
    std::uint64_t largest = 0;
    for (const Letter& letter : letters.outgoing) largest = std::max(largest, letter.bytes);
    return largest;
}

// The way over windows that the call was asked to take.
std::optional<RmaOptions> windows_for(const World& world, const CollectiveCall& call) {
    if (!call.persistent || call.neighbours || call.collective != Collective::alltoallv) return std::nullopt;
    return rma_options(world.windows_wanted());
}

const Capabilities& carrier_of(Lane& lane) { return lane.driven().channel()->transport().capabilities(); }

// Null, on all ranks: windows cannot be used for it.
std::unique_ptr<Ongoing> offer_windows(const CollectiveCall& call, const CallShape& shape,
                                       Communicator& communicator, World& world, const RmaOptions& options,
                                       std::uint64_t began_ns) {
    std::unique_ptr<Ongoing> ongoing = make_window_plan(call, shape, communicator, world, options);
    if (ongoing == nullptr) return nullptr;
    settle_together(native_times_of(communicator, call).get(), [&](NativeTimes::Words& words) {
        std::uint64_t slowest[NativeTimes::places];
        std::copy(words.begin(), words.end(), slowest);
        agree_on(call.comm, host()->max, slowest);
        words = std::to_array(slowest);
    });
    const std::string name(name_of(options.way));
    const auto account = open_account(nullptr, communicator, call, name, 0, shape.total, began_ns);
    account->set_shortcoming(shortcoming_of(options.way));
    Ongoing::Options& kept = ongoing->options();
    kept.account = account;
    note_accelerated(name, "asked for", shape.bytes, carrier_of(*kept.lane), kept.policy);
    return ongoing;
}

// The settings that may change while the program runs: why the call is the native library's.
std::optional<Reason> steered_away(const World& world, Collective collective, std::uint64_t bytes) {
    const Wanted wanted = world.wanted(collective);
    if (wanted == Wanted::native) return Reason::native_setting;
    if (collective == Collective::bcast && bytes < world.bcast_min_bytes()) return Reason::small;
    return std::nullopt;
}

// Whether THALWEG_FLOAT_ORDER leaves a reduction to the native library. A persistent one is ours from its
// first start on, or never. The others would be native before the set-up and ours behind it: they are ours
// where the communicator was set up when it was made.
bool keeps_order(const World& world, const CollectiveCall& call, const CallShape& shape,
                 Communicator::SelfDriven& self_driven) {
    const Settings& settings = world.settings();
    if (!shape.reducer.rounds || world.wanted(call.collective) == Wanted::algorithm) return false;
    if (settings.float_order != FloatOrder::stable) return settings.float_order == FloatOrder::native;
    if (call.persistent) return false;
    if (settings.setup != SetupSetting::early || self_driven.state == nullptr)
        self_driven.native_order = true;
    return self_driven.native_order;
}

// Of a neighbourhood that asks for leaders: whether its messages are noted for those. Equal on all ranks, as
// is that the ranks are to tell one another what they have noted, which it leads to at times.
bool notes_edges(const World& world, const CollectiveCall& call, Communicator::SelfDriven& self_driven) {
    if (!call.neighbours || call.persistent || world.wanted(call.collective) != Wanted::algorithm)
        return false;
    NonblockingState* const state = self_driven.state.get();
    if (state != nullptr && !state->neighbours().bundles()) return false;
    if (self_driven.edges.count() || state == nullptr || !state->leaders().agreed()) {
        self_driven.tells_edges = true;
        if (state != nullptr && !call.blocking) want_meeting(self_driven);
    }
    return true;
}

// What is noted of a call's messages, for what the ranks tell one another later.
struct Noted {
    bool largest = false, traits = false, edges = false;
};

// Counts the call, on all ranks at the same place, whether or not this one can run it; where it is time, the
// ranks are to tell one another.
Noted count_noted(const World& world, const CollectiveCall& call, Communicator::SelfDriven& self_driven) {
    const bool waits_for_nobody = !call.persistent && !call.blocking;
    NonblockingState* const state = self_driven.state.get();
    Noted noted;
    noted.largest = call.neighbours && waits_for_nobody;
    if (noted.largest && self_driven.sizes.count() && state != nullptr && state->neighbours().by_size()) {
        want_meeting(self_driven);
        self_driven.tells_largest = true;
    }
    noted.traits = call.has_letters() && !call.neighbours && waits_for_nobody;
    if (noted.traits && (self_driven.exchange_sizes.count() || state == nullptr)) {
        if (state != nullptr) want_meeting(self_driven);
        self_driven.tells_traits = true;
    }
    noted.edges = notes_edges(world, call, self_driven);
    return noted;
}

void note_messages(const Noted& noted, const Letters& letters, const Communicator& communicator,
                   Communicator::SelfDriven& self_driven) {
    const int rank = communicator.rank();
    if (noted.largest) self_driven.sizes.note(largest_of(letters));
    if (noted.edges) self_driven.edges.note(letters, rank);
    if (noted.traits && self_driven.exchange_sizes.notes())
        self_driven.exchange_sizes.note(
            words_of(letters, rank, communicator.size(), communicator.topology()));
}

// Whether a program would find the blocks of a grid now here, now there: the first calls are native, and of
// blocking ones any. A persistent operation is ours in all its starts.
bool keeps_blocks(const World& world, const CollectiveCall& call, const NonblockingState& state) {
    return call.neighbours && !call.gathers && !call.persistent && !state.natively_in_order(call.blocking) &&
           world.wanted(call.collective) != Wanted::algorithm;
}

}  // namespace

bool look_at_neighbours(const CollectiveCall& call, Communicator& communicator, CallShape& shape) {
    std::shared_ptr<const Neighbourhood>& known = communicator.self_driven.neighbourhood;
    if (known == nullptr) {
        const QuietErrors quiet(call.comm);
        std::optional<Neighbourhood> found = find_neighbourhood(call.comm);
        if (!found) return false;
        if (*communicator.record().topology != '\0') communicator.learn_name(call.comm);
        known = std::make_shared<const Neighbourhood>(std::move(*found));
    }
    const NeighbourSide sent{call.sent, call.send_count, call.send_type, call.gathers};
    const NeighbourSide received{call.received, call.receive_count, call.receive_type, false};
    if (call.send == MPI_IN_PLACE || call.receive == MPI_IN_PLACE) return false;
    if (!read_neighbours(*known, sent, received, shape.letters)) return false;
    const std::size_t messages = std::max<std::size_t>(shape.letters.outgoing.size(), 1);
    shape.total = shape.letters.sent_bytes();
    shape.bytes = (shape.total + messages - 1) / messages;
    return !lead_nowhere(call, shape);
}

namespace {

// As offer(), but for the error handler.
std::unique_ptr<Ongoing> make_ongoing(const CollectiveCall& call, int& error) {
    const Declining decline(call.kind);
    const auto declined = [&decline](Reason reason) {
        decline.anywhere(reason);
        return nullptr;
    };
    const std::uint64_t began_ns = call.persistent ? now_ns() : 0;
    error = MPI_SUCCESS;
    // A rank without the object that wraps them would not answer the others.
    if (call.persistent && Attendance::makers_differ()) return declined(Reason::unalike);
    // Memory does without: where it has been set up, who waits drives what runs there, and plans that are to
    // run there bring an agent of their own.
    const bool unattended = !Attendance::present();
    const bool in_memory = may_be_planned_in_memory(call);
    if (unattended && !in_memory && !(call.blocking && Attendance::serves_memory()))
        return declined(Attendance::refusal());
    World& world = *World::get();
    if (call.comm == host()->comm_null) return declined(Reason::invalid);
    const std::optional<RmaOptions> windows = windows_for(world, call);
    // One host: nothing need be known of the communicator.
    const bool only_ours = nobody_else_serves(call);
    if (world.wanted(call.collective) == Wanted::automatic &&
        world.leaves_all_native(call.collective, call.blocking) && !windows && !only_ours && !in_memory &&
        call.tried == nullptr)
        return declined(Reason::native_best);
    Communicator* const found = Communicator::of(call.comm, world);
    if (found == nullptr) return declined(being_freed(call.comm) ? Reason::freeing : Reason::invalid);
    Communicator& communicator = *found;
    const auto declined_on = [&](Reason reason, std::uint64_t bytes) {
        decline.on(communicator, reason, bytes);
        return nullptr;
    };
    if (communicator.phase() == Communicator::Phase::native) return declined_on(communicator.reason(), 0);
    // What all ranks agree on before a set-up, those of another world would not answer.
    if ((call.persistent || windows) && !communicator.is_of_world(call.comm))
        return declined_on(communicator.reason(), 0);
    if (unattended && !in_memory && lane_in_memory(communicator) == nullptr)
        return declined_on(Attendance::refusal(), 0);
    if (communicator.out_of_step) {
        error =
            tell_failure("a nonblocking collective", Status::transport_failed, communicator.native_error());
        return nullptr;
    }
    Communicator::SelfDriven& self_driven = communicator.self_driven;
    if (self_driven.refused && !windows) return declined_on(*self_driven.refused, 0);
    // Before anything is counted: what the library refuses this rank alone is no call for the others. What
    // this rank alone has to decline is one.
    CallShape shape;
    std::optional<Reason> unfit;
    if (!call.neighbours)
        unfit = look_at(call, communicator.rank(), communicator.size(), shape);
    else if (!look_at_neighbours(call, communicator, shape))
        unfit = Reason::invalid;
    if (unfit == Reason::invalid) return declined_on(Reason::invalid, shape.bytes);
    const Noted noted = count_noted(world, call, self_driven);
    if (unfit) return declined_on(*unfit, shape.bytes);
    note_messages(noted, shape.letters, communicator, self_driven);
    if (const auto why = steered_away(world, call.collective, shape.bytes))
        return declined_on(*why, shape.bytes);

    // What they put has to fit.
    const bool fits = !windows || !call.has_letters() ||
                      agree_on_traits(call.comm, shape.letters, communicator.rank(), communicator.size(),
                                      communicator.topology())
                          .sizes_agree;
    if (windows && fits)
        if (auto ongoing = offer_windows(call, shape, communicator, world, *windows, began_ns))
            return ongoing;
    if (keeps_order(world, call, shape, self_driven)) return declined_on(Reason::order, shape.bytes);
    Forethought forethought;
    const bool planned = in_memory && plan_in_memory(call, shape, communicator, forethought);
    // Where something of ours advances it, rows for overlapped ones may still take it, and one that the
    // library lacks is ours whatever they say.
    const bool is_left = world.leaves_all_native(call.collective, false) && !only_ours;
    if (in_memory && !planned && (unattended || is_left))
        return declined_on(Reason::native_best, shape.bytes);
    // What would be ours nowhere pays for no set-up.
    if (call.persistent && !planned && !windows && self_driven.state == nullptr &&
        is_left_everywhere(world, call, shape))
        return declined_on(Reason::native_best, shape.bytes);
    if (!planned && (call.persistent || call.blocking)) {
        const bool between_hosts = call.persistent && !windows && !may_be_on_one_host(world, call);
        if (between_hosts && self_driven.left_on_one_host && self_driven.state == nullptr)
            return declined_on(Reason::native_best, shape.bytes);
        const bool for_plan = call.persistent && call.has_letters() && self_driven.state == nullptr;
        if (for_plan)
            forethought.coming.emplace(call.comm, shape.letters, communicator.rank(), communicator.size(),
                                       communicator.topology());
        set_up(call.comm, communicator, {for_plan, false, between_hosts});
        if (self_driven.refused) return declined_on(*self_driven.refused, shape.bytes);
        if (self_driven.state == nullptr) return declined_on(Reason::native_best, shape.bytes);
    } else if (self_driven.state == nullptr) {
        const std::optional<Reason> why_not = why_not_set_up(world, call, shape, self_driven);
        if (!why_not) want_meeting(self_driven);
        return declined_on(why_not.value_or(Reason::not_set_up), shape.bytes);
    }
    NonblockingState& state = *self_driven.state;
    // Where no plan has been made of it, the ranks have still to agree on the set-up. `state` may be gone.
    const auto not_planned = [&](Reason reason) {
        if (!state.confirm(call.comm)) {
            self_driven.refused = Reason::setup_failed;
            self_driven.state.reset();
        }
        return declined_on(reason, shape.bytes);
    };
    if (!call.blocking && state.may_outlive_world()) return not_planned(Reason::session);
    if (call.blocking && noted.edges && self_driven.tells_edges && state.neighbours().bundles())
        state.agree_on_edges(call.comm);
    if (keeps_blocks(world, call, state)) return not_planned(Reason::blocks);
    if (call.neighbours && !state.numbers_suffice()) return not_planned(Reason::cannot);
    std::shared_ptr<Lane> lane = call.has_letters() ? state.exchange_lane() : state.lane();
    // A plan is made by all ranks or by none: in there they agree on whether the lane is broken.
    if (!call.persistent && lane->broken()) {
        error = tell_failure("a nonblocking collective", Status::transport_failed, lane->native_error());
        return nullptr;
    }
    const Pieces pieces = call.pieces_of(shape.decided_bytes);
    const bool stable = stays_stable(world.settings(), shape, world.wanted(call.collective));
    Bound bound;
    std::optional<Exchange>& exchange = bound.key.exchange;
    if (windows && call.has_letters()) exchange.emplace();
    Decision decision = windows ? Decision{standard_choice(*find_algorithm(Collective::alltoallv, "spread")),
                                           "in the place of windows"}
                        : call.neighbours       ? decide_neighbours(state, call, shape, exchange, forethought)
                        : call.has_letters()    ? decide_exchange(state, call, shape, exchange, forethought)
                        : call.tried != nullptr ? *call.tried
                        : forethought.decision  ? *forethought.decision
                                                : state.decide(call.collective, pieces.bytes, stable);
    if (!decision.choice) return not_planned(reason_of(decision));
    std::shared_ptr<Lane> plan_or_lane = lane;
    std::vector<std::uint32_t> numbers;
    if (call.persistent) {
        Reason why = Reason::setup_failed;
        const std::shared_ptr<NativeTimes> native = native_times_of(communicator, call);
        NonblockingState::Told told{largest_of(shape.letters), {}};
        if (native != nullptr) told.native = native->noted();
        // Afterwards the others have a plan: what this rank may be refused it asks for now.
        bind(communicator, call, shape, bound);
        const bool ready = bound.ongoing != nullptr && claim_request(*bound.ongoing) && reserve_has_room();
        plan_or_lane = state.make_plan_lane(call.comm, call.has_letters(), forethought.take_name(),
                                            pieces.count, ready, numbers, told, why);
        if (native != nullptr && plan_or_lane != nullptr) native->settle(told.native);
        if (plan_or_lane == nullptr) return not_planned(why);
        // What all of them exchange was agreed on with the lane.
        if (call.neighbours && !planned) decision = state.neighbours().decide(told.message_bytes);
        if (call.neighbours)
            exchange->in_pairs = settle_neighbours(decision, forethought.messages, state.topology());
        if (only_ours) rather_straight(decision);
        if (!decision.choice) return declined_on(reason_of(decision), shape.bytes);
        if (call.neighbours && !exchange->sizes_agree)
            go_straight(decision, call.collective, "a neighbourhood", state.rank());
        if (call.neighbours) without_leaders(decision, *exchange);
    }
    // Where nobody learns how long a message was that found no room, nobody can tell whether it was a last
    // piece.
    if (exchange && !exchange->sizes_agree && !carrier_of(*plan_or_lane).tells_excess)
        send_whole(decision, call.neighbours);
    std::shared_ptr<const ExchangeKey> kept_as;
    const std::uint64_t slot_bytes = exchange ? exchange->slot_bytes : 0;
    const bool in_pairs = exchange && exchange->in_pairs;
    if (const ExchangeView view{call, shape, *decision.choice, slot_bytes, in_pairs, state.generation()};
        view.repeatable()) {
        if (std::unique_ptr<Ongoing> kept = take_kept(lane, view)) {
            note_accelerated(to_text(*decision.choice), decision.reason, shape.bytes,
                             carrier_of(*plan_or_lane), state.policy());
            if (!call.blocking) kept->start();
            return kept;
        }
        kept_as = std::make_shared<const ExchangeKey>(view.key());
    }
    if (slot_bytes != 0) state.leaders().tell(*exchange);
    Carriage carriage{plan_or_lane, state.topology(), decision, state.policy(), state.generation()};
    carriage.numbers = std::move(numbers);
    std::unique_ptr<Ongoing> ongoing = assemble(communicator, call, shape, std::move(carriage), bound);
    if (call.persistent && decision.choice->algorithm->name == "notify")
        open_direct(call.comm, *plan_or_lane, ongoing.get(), state.rank(), state.size());
    if (bound.status == Status::invalid_argument) return declined_on(Reason::invalid, shape.bytes);
    if (ongoing == nullptr) {
        plan_or_lane->fail();
        error = tell_failure("a nonblocking collective", bound.status, MPI_SUCCESS);
        return nullptr;
    }
    if (call.persistent) {
        ongoing->expect_messages();
        ongoing->options().account = open_account(&state, communicator, call, to_text(*decision.choice),
                                                  shape.decided_bytes, shape.total, began_ns);
    }
    ongoing->options().kept_as = std::move(kept_as);
    note_accelerated(to_text(*decision.choice), decision.reason, shape.bytes, carrier_of(*plan_or_lane),
                     state.policy());
    if (!call.persistent && !call.blocking) ongoing->start();
    return ongoing;
}

}  // namespace

std::unique_ptr<Ongoing> offer(const CollectiveCall& call, int& error) {
    std::unique_ptr<Ongoing> ongoing = make_ongoing(call, error);
    if (error != MPI_SUCCESS) call_error_handler(call.comm, error);
    return ongoing;
}

}  // namespace thalweg
