"""A Poisson problem, by finite elements on a mesh that DOLFINx distributes: vectors are completed by its own neighbourhood
exchanges, and PETSc solves. Prints what came out as one line of JSON on rank 0; the solution is known."""

import json

import numpy
import ufl
from dolfinx import fem, mesh
from mpi4py import MPI
from petsc4py import PETSc

CELLS, SCATTERS = 24, 20

comm = MPI.COMM_WORLD
domain = mesh.create_unit_square(comm, CELLS, CELLS, ghost_mode=mesh.GhostMode.shared_facet)
space = fem.FunctionSpace(domain, ("CG", 2))
boundary = fem.Function(space)
boundary.interpolate(lambda x: 1 + x[0] ** 2 + 2 * x[1] ** 2)
facets = mesh.locate_entities_boundary(domain, domain.topology.dim - 1,
                                       lambda x: numpy.isclose(x[0] * (1 - x[0]) * x[1] * (1 - x[1]), 0))
fixed = fem.dirichletbc(boundary, fem.locate_dofs_topological(space, domain.topology.dim - 1, facets))
u, v = ufl.TrialFunction(space), ufl.TestFunction(space)
source = fem.Constant(domain, PETSc.ScalarType(-6))
options = {"ksp_type": "cg", "pc_type": "jacobi", "ksp_rtol": 1e-12}
problem = fem.petsc.LinearProblem(ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx, source * v * ufl.dx, [fixed],
                                  petsc_options=options)
solution = problem.solve()

# What a rank has of its neighbours' values must be theirs, in every exchange anew.
local = space.dofmap.index_map.size_local
right = solution.x.array.copy()
solution.x.scatter_forward()
stale = float(numpy.abs(solution.x.array - right).max())
for scale in range(1, SCATTERS + 1):
    solution.x.array[:local] = right[:local] * scale
    solution.x.array[local:] = numpy.nan
    solution.x.scatter_forward()
    stale = max(stale, float(numpy.abs(solution.x.array - right * scale).max()))
solution.x.array[:] = right

there = fem.Function(space)
there.interpolate(lambda x: 1 + x[0] ** 2 + 2 * x[1] ** 2)
off = float(numpy.abs(solution.x.array - there.x.array).max())
figures = {
    "unknowns": space.dofmap.index_map.size_global,
    "ghosts": comm.allreduce(len(right) - local),
    "norm": solution.vector.norm(),
    "iterations": problem.solver.getIterationNumber(),
    "error": comm.allreduce(off, op=MPI.MAX),
    "stale": comm.allreduce(stale, op=MPI.MAX),
}
if comm.rank == 0:
    print(json.dumps(figures), flush=True)
