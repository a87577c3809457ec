// Puts one word into the store of a launcher whose conversation with the MPI library cannot be joined from
// outside: between the library's first `init`, which may be said once only, and the barrier that spreads what
// was put. The client inside the library is not exported; so for the time of the native MPI_Init the
// descriptor PMI_FD leads to a thread of ours, which passes every byte on as it is, and which says our `put`
// just before the first barrier.
//
// Two dialects, told apart by the version that the launcher agrees to: PMI-1, lines that end with a newline;
// PMI-2, six bytes with the length, then "cmd=...;key=value;". Both are spoken by Slurm's --mpi=pmi2 and by
// hydra. What is neither is passed on and nothing is said.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <string>

namespace thalweg {

class PmiRelay {
  public:
    enum class Dialect { none, pmi1, pmi2 };

    // Takes the descriptor over; `key` and `word` will be put. False: nothing was changed. Errors are not
    // told: without a word this rank counts as absent.
    bool start(int descriptor, const char* key, const char* word);
    // Gives the descriptor back, when the library has returned from its initialisation; the relay's thread is
    // gone then. The dialect in which the word was put, none where it was not.
    Dialect stop();
    bool running() const { return running_; }
    // PMI-1's name of the job's store, empty otherwise; valid after stop().
    const char* space() const { return space_; }

  private:
    static void* run(void* self);
    void relay();
    bool from_library();
    bool from_launcher();
    bool pass_on_message(const std::string& message);
    bool put_word();
    bool ask(const std::string& request, const char* reply_command, std::string& reply);
    bool next_message(std::string& bytes, std::string& message) const;

    bool running_ = false;
    int descriptor_ = -1;  // the number that the library uses
    int library_ = -1;     // our end of the pair whose other end has that number
    int launcher_ = -1;    // what had that number
    int stop_[2] = {-1, -1};
    int descriptor_flags_ = 0;
    pthread_t thread_{};
    // Everything below belongs to the thread until stop() has joined it.
    std::string key_, word_, pending_, answers_;
    Dialect dialect_ = Dialect::none;  // of the conversation, once both sides have agreed
    bool transparent_ = false;         // no more looking: bytes go through
    bool put_ = false;
    char space_[256] = "";
};

// The text after `name=` in a message, up to the next `separator` or the end. False when it is not there.
bool pmi_field(const char* message, const char* name, char separator, char* value, std::size_t capacity);

// Sends a whole message to the launcher / receives at least one byte within the time that a launcher may
// need. False: it is gone or silent.
bool pmi_send(int descriptor, const char* bytes, std::size_t count);
std::ptrdiff_t pmi_receive(int descriptor, char* bytes, std::size_t capacity);
// A request in the dialect's form, e.g. with PMI-2's length in front of it.
std::string pmi_framed(PmiRelay::Dialect dialect, const std::string& body);

}  // namespace thalweg
