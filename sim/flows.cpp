#include "sim/flows.h"

#include <utility>
#include <vector>

#include "sim/places.h"

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
        const Id id = flows_.keep({activity, std::move(done)});  // + 1 is the activity's user data
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

    void ended(Id id) {
        ended_.clear();
        Flow flow = flows_.take(id);
        ended_.push_back(std::move(flow.activity));
        flow.done();
    }

    const Platform& platform_;
    Places<Flow> flows_;
    std::vector<s4u::ActivityPtr> ended_;  // kept until SimGrid has let go of them
};

}  // namespace

std::unique_ptr<Flows> simgrid_flows(const Platform& platform) {
    return std::make_unique<SimgridFlows>(platform);
}

}  // namespace thalweg::sim
