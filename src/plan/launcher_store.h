// One word per rank in the key-value store of the job's launcher: written before the native MPI_Init, spread
// by the barrier inside it, read afterwards. After that barrier a word is there or will never be, so that all
// readers agree without any waiting. Nobody else takes part, no message of MPI is sent.
//
// Two dialects: the lines that MPICH's and Intel MPI's hydra speak on the descriptor PMI_FD (the client
// inside those libraries is not exported, so we write the lines ourselves, only while nobody else does:
// around MPI_Init), and PMIx through the client library that Open MPI has loaded, as a rider on Open MPI's
// own commit.
#pragma once

#include <cstddef>

namespace thalweg {

enum class Word { present, absent, failed };

class LauncherStore {
  public:
    // Before the native MPI_Init. False where the launcher is not one of hydra's.
    bool write(const char* word);
    // Inside the native MPI_Init, when it is about to commit what it put into PMIx itself. False where that
    // is not possible or not needed any more.
    bool write_while_committing(const char* word);
    // After the native MPI_Init. Fills `word` (ends with a null) when present.
    Word read(int rank, char* word, std::size_t capacity);
    // Whether a write succeeded.
    bool open() const { return dialect_ != Dialect::none; }

  private:
    enum class Dialect { none, hydra, pmix };
    bool ask_hydra(const char* request, char* reply, std::size_t capacity);
    Word read_hydra(int rank, char* word, std::size_t capacity);
    Word read_pmix(int rank, char* word, std::size_t capacity);

    Dialect dialect_ = Dialect::none;
    int descriptor_ = -1;
    char space_[256] = "";  // hydra: the name of the job's store; pmix: the job's namespace
};

}  // namespace thalweg
