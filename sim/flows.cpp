#include "sim/flows.h"

#include <utility>
#include <vector>

namespace thalweg::sim {
namespace {

namespace s4u = simgrid::s4u;

class SimgridFlows final : public Flows {
  public:
    explicit SimgridFlows(const Platform& platform) : platform_(platform) {
        s4u::Activity::on_completion_cb([this](const s4u::Activity& activity) {
            ended(static_cast<Id>(reinterpret_cast<std::uintptr_t>(activity.get_data<void>()) - 1));
        });
    }

    // Its rate is bounded by the platform: SimGrid's own bound has no effect on transfers between hosts.
    Id begin(int from, int to, unsigned rail, double bytes, std::function<void()> done) override {
        s4u::CommPtr activity = s4u::Comm::sendto_init();
        activity->set_payload_size(static_cast<std::uint64_t>(bytes));
        const Id id = keep(activity, std::move(done));
        activity->set_data(reinterpret_cast<void*>(static_cast<std::uintptr_t>(id) + 1));
        activity->set_source(platform_.end(from, rail));
        activity->set_destination(platform_.end(to, rail));  // both ends known: it starts
        return id;
    }
    void suspend(Id flow) override { flows_[flow].activity->suspend(); }
    void resume(Id flow) override { flows_[flow].activity->resume(); }

  private:
    struct Flow {
        s4u::ActivityPtr activity;
        std::function<void()> done;
    };

    // The place of an activity that starts; its number + 1 is the activity's user data.
    Id keep(s4u::ActivityPtr activity, std::function<void()> done) {
        Id id = 0;
        if (free_.empty()) {
            id = static_cast<Id>(flows_.size());
            flows_.emplace_back();
        } else {
            id = free_.back();
            free_.pop_back();
        }
        flows_[id] = {std::move(activity), std::move(done)};
        return id;
    }

    void ended(Id id) {
        ended_.clear();
        ended_.push_back(std::move(flows_[id].activity));
        const std::function<void()> done = std::move(flows_[id].done);
        flows_[id] = {};
        free_.push_back(id);
        done();
    }

    const Platform& platform_;
    std::vector<Flow> flows_;
    std::vector<Id> free_;
    std::vector<s4u::ActivityPtr> ended_;  // kept until SimGrid has let go of them
};

}  // namespace

std::unique_ptr<Flows> simgrid_flows(const Platform& platform) {
    return std::make_unique<SimgridFlows>(platform);
}

}  // namespace thalweg::sim
