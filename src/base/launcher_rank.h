// Which rank of a job the launcher's environment says this process is, before MPI_Init and without an MPI.
#pragma once

namespace thalweg {

// Variables of a rank's number, the innermost launcher's first: PMIx, Open MPI, hydra and other PMI servers,
// MVAPICH's mpirun_rsh (two), Cray's aprun; Flux and Slurm, which set theirs around other launchers, too.
inline constexpr const char* launcher_rank_variables[] = {
    "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK",       "MV2_COMM_WORLD_RANK",
    "PMI_ID",    "ALPS_APP_PE",          "FLUX_TASK_RANK", "SLURM_PROCID"};

}  // namespace thalweg
