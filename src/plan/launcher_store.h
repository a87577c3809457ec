// One word per rank in the key-value store of the job's launcher: written before the native MPI_Init, spread
// by the barrier inside it, read afterwards. After that barrier a word is there or will never be, so that all
// readers agree without any waiting. Nobody else takes part, no message of MPI is sent.
//
// Three ways in. MPICH's and Intel MPI's hydra answers lines of PMI-1 on the descriptor PMI_FD at any time:
// we write our own, only while nobody else does (around MPI_Init). Another launcher with a PMI_FD, such as
// Slurm's
// --mpi=pmi2, is spoken to in the middle of the library's own conversation (pmi_relay.h). PMIx is reached
// through the client library that Open MPI has loaded, as a rider on Open MPI's own commit.
#pragma once

#include <cstddef>

namespace thalweg {

enum class Word { present, absent, failed };

class PmiRelay;

class LauncherStore {
  public:
    // Whether write() would find a launcher to speak to. Local.
    static bool reachable();
    // Before the native MPI_Init. False where the launcher has no PMI_FD. True with another launcher than
    // hydra's promises nothing yet: see settle().
    bool write(const char* word);
    // Inside the native MPI_Init, when it is about to commit what it put into PMIx itself. False where that
    // is not possible or not needed any more.
    bool write_while_committing(const char* word);
    // After the native initialisation, before anything else: ends what goes on beside it. Does nothing the
    // second time.
    void settle();
    // After settle(). Fills `word` (ends with a null) when present.
    Word read(int rank, char* word, std::size_t capacity);
    // Whether a write succeeded. Known after settle().
    bool open() const { return dialect_ != Dialect::none; }

  private:
    enum class Dialect { none, pmi1, pmi2, pmix };
    bool write_to_hydra(const char* key, const char* word);
    bool ask(const char* request, char* reply, std::size_t capacity);
    Word read_pmi1(int rank, char* word, std::size_t capacity);
    Word read_pmi2(int rank, char* word, std::size_t capacity);
    Word read_pmix(int rank, char* word, std::size_t capacity);

    Dialect dialect_ = Dialect::none;
    int descriptor_ = -1;
    PmiRelay* relay_ = nullptr;  // only during the native initialisation
    char space_[256] = "";       // pmi1: the name of the job's store; pmix: the job's namespace
};

}  // namespace thalweg
