/* PMIx_Commit, on which our word in the launcher's store rides (plan/launcher_store.h): the one call of the
 * native MPI_Init behind which everything put so far is spread to all ranks. */
#include "interpose/next.h"

typedef int Next_PMIx_Commit(void);
Next_PMIx_Commit wrap_PMIx_Commit THALWEG_WRAPS(PMIx_Commit);
static ThalwegNext next_PMIx_Commit = {"PMIx_Commit", (void*)wrap_PMIx_Commit, NULL};

int wrap_PMIx_Commit(void) {
    Next_PMIx_Commit* next = (Next_PMIx_Commit*)thalweg_next(&next_PMIx_Commit);
    if (next == NULL) return -1; /* PMIX_ERROR */
    thalweg_before_commit();
    return next();
}
