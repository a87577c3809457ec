# Exchanges: alltoalls, neighbourhoods and halos, blocking, nonblocking and persistent, by messages and puts.
# Included by plan_mpi(), whose run() and settings it uses.
# Alltoalls: every form, over both transports, with every algorithm.
set(alltoalls "${with_persistent};${chain};THALWEG_TEST_TAKEN=1")
run(alltoalls 3 mpi "${alltoalls};THALWEG_ALLTOALLV=spread" alltoalls)
run(alltoalls_pairwise 5 full "${alltoalls};THALWEG_ALLTOALLV=pairwise" alltoalls 1000)
run(alltoalls_native 2 mpi "${with_persistent}" alltoalls)
# Where no agent would advance them none is taken: there is none, or it may not call the MPI library and has nothing else.
set(declined "${with_persistent};THALWEG_ALLTOALLV=spread")
set(declined_single "${declined};THALWEG_TEST_LEVEL=single")
run(declined_exchanges_off 2 ${inside_current} "${declined};THALWEG_AGENT=off" declined_exchanges agent_off)
run(declined_exchanges_mpi 2 ${inside_current} "${declined_single};THALWEG_TRANSPORT=mpi" declined_exchanges unattended)
run(declined_exchanges_no_ucx 2 ${inside} "${declined_single};THALWEG_TRANSPORT=ucx;THALWEG_UCX_TLS=no-such-transport" declined_exchanges unattended)
# Memory that is none, named by one rank alone. Other libraries look at no memory, or not in all of these calls.
if(name MATCHES "^mpich")
  run(nowhere 3 mpi "${ucx};THALWEG_ALLTOALLV=spread" nowhere)
endif()
if(name MATCHES "^openmpi")
  run(nowhere_in_place 3 mpi "${ucx};THALWEG_ALLTOALLV=spread" nowhere in_place)
endif()
set(two_by_two "THALWEG_TOPOLOGY=node:2 core:2")
run(alltoalls_hosts 4 mpi "${alltoalls};${ucx};${two_by_two};THALWEG_ALLTOALLV=node_leader;THALWEG_TEST_LEVEL=single" alltoalls)
run(alltoalls_ucx 3 mpi "${alltoalls};${ucx};THALWEG_ALLTOALLV=pairwise;THALWEG_TEST_LEVEL=single" alltoalls)
# Ten thousand starts of a plan: by messages, by puts, and by messages of whole hosts.
run(alltoalls_starts 3 full "${alltoalls};${ucx};THALWEG_ALLTOALLV=spread;THALWEG_TEST_LEVEL=single" alltoalls 10000)
run(alltoalls_starts_notify 3 full "${alltoalls};${ucx};THALWEG_ALLTOALLV=notify;THALWEG_TEST_LEVEL=single" alltoalls 10000)
run(alltoalls_starts_hosts 4 full "${alltoalls};${two_hosts};THALWEG_ALLTOALLV=node_leader;THALWEG_TEST_LEVEL=single" alltoalls 10000)
# Plans that nobody names, between hosts of one rank: messages that are alike, and messages that are not.
run(uneven 4 ${inside_current} "${with_persistent};${ucx};THALWEG_TOPOLOGY=node:4 core:1;THALWEG_RATE=100mbit;THALWEG_LATENCY_US=60;THALWEG_TEST_LEVEL=single" uneven)
run(uneven 2 ${inside_current} "${with_persistent};${ucx};THALWEG_TUNING=${CMAKE_CURRENT_SOURCE_DIR}/two_neighbours.json;THALWEG_TOPOLOGY=node:2 core:1;THALWEG_TEST_LEVEL=single" uneven)
run(sized 4 ${inside_current} "${with_persistent};${ucx};THALWEG_TOPOLOGY=node:4 core:1;THALWEG_RATE=100mbit;THALWEG_LATENCY_US=60;THALWEG_TEST_LEVEL=single" sized)
# Every form, also with counts of MPI_Count, whose arrays die at once.
run(alltoall_forms 3 ${inside_current} "${alltoalls};THALWEG_ALLGATHER=ring;THALWEG_ALLTOALLV=spread" alltoall_forms)
run(alltoall_forms_notify 4 full "${alltoalls};${two_hosts};THALWEG_ALLGATHER=ring;THALWEG_ALLTOALLV=notify;THALWEG_TEST_LEVEL=single" alltoall_forms)
run(alltoall_forms_native 2 full "${with_persistent}" alltoall_forms)
# Blocks that lie more than 2 GiB apart, in untouched addresses.
run(far 3 ${inside_current} "${alltoalls};${ucx};THALWEG_ALLTOALLV=spread;THALWEG_TEST_LEVEL=single" far)
run(far_shm 3 full "${alltoalls};${shm};THALWEG_ALLTOALLV=spread" far)
run(far_mpi 3 full "${alltoalls};THALWEG_ALLTOALLV=pairwise:chunk_bytes=8K" far)
if(NOT name STREQUAL mpich4) # whose windows are not used
  foreach(way fence lock pscw get)
    run(far_${way} 3 full "${alltoalls};THALWEG_ALLTOALLV=rma_${way}" far rma_${way})
  endforeach()
endif()
# More than 2 GiB in one start: straight, by puts, in one message of a host, and through a window.
if(name MATCHES "^(mpich5|openmpi5|impi)$")
  set(large "${with_persistent};${ucx};THALWEG_TEST_LEVEL=single")
  run(large_plans_spread 3 full "${large};THALWEG_ALLTOALLV=spread" large_plans spread)
  run(large_plans_notify 3 full "${large};THALWEG_ALLTOALLV=notify" large_plans notify)
  run(large_plans_hosts 4 full "${with_persistent};${two_hosts};THALWEG_ALLTOALLV=node_leader;THALWEG_TEST_LEVEL=single" large_plans node_leader out)
  run(large_plans_pairwise 3 full "${large};THALWEG_ALLTOALLV=pairwise" large_plans pairwise)
  foreach(way fence lock)
    run(large_plans_${way} 3 full "${with_persistent};THALWEG_ALLTOALLV=rma_${way}" large_plans rma_${way})
  endforeach()
  # Who naps between looks lets the library move a piece per look: 2 GiB took minutes.
  foreach(way pscw get)
    run(large_plans_${way} 3 full "${with_persistent};THALWEG_WAIT=spin;THALWEG_ALLTOALLV=rma_${way}" large_plans rma_${way})
  endforeach()
endif()
# Other memory at the same addresses.
run(remapped 3 ${inside} "${alltoalls};${ucx};THALWEG_ALLTOALLV=spread;THALWEG_TEST_LEVEL=single" remapped)
run(remapped_shm 3 ${inside_current} "${alltoalls};${shm};THALWEG_ALLTOALLV=spread" remapped)
run(remapped_notify 4 ${inside} "${alltoalls};${two_hosts};THALWEG_ALLTOALLV=notify;THALWEG_TEST_LEVEL=single" remapped)
run(remapped_mpi 3 full "${alltoalls};THALWEG_ALLTOALLV=pairwise" remapped)
# Memory that is taken back as soon as a blocking call has returned.
set(returned "${alltoalls};THALWEG_SETUP=early;THALWEG_ALLGATHER=ring;THALWEG_ALLTOALLV=spread;THALWEG_TEST_LEVEL=single")
run(returned 3 ${inside_current} "${returned};${shm}" returned 4 copies)
run(returned_two_hosts 4 ${inside_current} "${returned};${two_hosts}" returned 4 copies)
run(returned_ucx 3 ${inside} "${returned};${ucx}" returned 4)
run(returned_libucp 3 ${inside} "${returned};THALWEG_TRANSPORT=ucx" returned 4)
run(returned_mpi 3 full "${returned};THALWEG_TRANSPORT=mpi;THALWEG_TEST_LEVEL=multiple" returned 4)
# Neighbourhoods: over MPI, inside the host, and both inside and between hosts.
set(neighbours "${with_persistent};THALWEG_TEST_TAKEN=1;THALWEG_ALLTOALLV=spread;THALWEG_SETUP=early")
string(REPLACE "=spread" "=node_leader" leaders "${neighbours}")
set(by_leaders "${leaders};THALWEG_TEST_ALGORITHM=node_leader;THALWEG_TEST_LEVEL=single")
foreach(ranks 2 3 5)
  run(neighbours ${ranks} ${inside_current} "${neighbours}" neighbours 8 ${ranks})
endforeach()
run(neighbours_shm 4 ${inside_current} "${neighbours};${shm}" neighbours 12 7)
run(neighbours_two_hosts 4 ${inside_current} "${neighbours};${two_hosts};THALWEG_TEST_LEVEL=single" neighbours 12 8)
# By what is chosen between hosts where nothing else is: the memory inside them, without having been asked for.
run(neighbours_pairwise 4 ${inside} "${neighbours};THALWEG_ALLTOALLV=pairwise;THALWEG_TEST_LEVEL=single;THALWEG_UCX_TLS=tcp,self;THALWEG_TOPOLOGY=node:2 core:2" neighbours 12 8)
# Whose sizes no rank knows of the others: small ones are left, as a tuning table says of these links.
run(grown 6 ${inside} "${with_persistent};${ucx};THALWEG_TOPOLOGY=node:3 core:2;THALWEG_RATE=100mbit;THALWEG_LATENCY_US=60;THALWEG_TEST_LEVEL=single" grown)
# The same arguments again and again, and others that look like them.
run(again 3 ${inside_current} "${neighbours};${shm}" again traps)
run(again_two_hosts 4 ${inside} "${neighbours};${two_hosts};THALWEG_TEST_LEVEL=single" again traps)
run(again_leader 4 ${inside} "${by_leaders};${two_hosts}" again traps)
run(again_threads 3 ${inside} "${neighbours};${shm}" again_threads)
run(again_threads_two_hosts 4 full "${neighbours};${two_hosts};THALWEG_TEST_LEVEL=single" again_threads)
run(again_mpi 2 full "${neighbours}" again traps)
# More buffers in turn than are kept; and staged faces, which THALWEG_PLAN_MEMORY bounds.
run(turns 4 ${inside} "${neighbours};${two_hosts};THALWEG_TEST_LEVEL=single" turns 20 44)
run(turns_bounded 4 ${inside} "${neighbours};${two_hosts};THALWEG_TEST_LEVEL=single;THALWEG_PLAN_MEMORY=10M" turns 0 14)
run(turns_shm 3 full "${neighbours};${shm}" turns 0 4)
# Persistent ones with puts between hosts.
run(neighbours_notify 4 ${inside} "${neighbours};${two_hosts};THALWEG_ALLTOALLV=notify;THALWEG_TEST_LEVEL=single" neighbours 12 8)
run(neighbours_many 6 full "${neighbours};${shm}" neighbours 300 9)
# So many edges between two ranks that their messages have no numbers.
run(many_edges 2 ${inside_current} "${neighbours}" many_edges)
run(many_edges_ucx 2 full "${neighbours};${ucx};THALWEG_TEST_LEVEL=single" many_edges)
# Every form of them, also with counts of MPI_Count, whose arrays die at once.
run(neighbour_forms 3 ${inside_current} "${neighbours}" neighbour_forms 8 31)
run(neighbour_forms_two_hosts 4 full "${neighbours};${two_hosts};THALWEG_TEST_LEVEL=single" neighbour_forms 8 32)
# By leaders of their hosts: with memory inside them, hosts in turn, ragged ones, one rank each; over the MPI library.
run(neighbours_leader 4 ${inside_current} "${by_leaders};${two_hosts}" neighbours 12 8)
run(neighbours_leader_cyclic 4 ${inside} "${by_leaders};${ucx};THALWEG_TOPOLOGY=node:2 core:2 map:cyclic" neighbours 12 21)
run(neighbours_leader_ragged 6 ${inside_current} "${by_leaders};${ucx};THALWEG_TOPOLOGY=node:3 core:1,3,2" neighbours 12 22)
run(neighbours_leader_alone 3 ${inside} "${by_leaders};${ucx};THALWEG_TOPOLOGY=node:3 core:1" neighbours 8 23)
run(neighbours_leader_mpi 5 ${inside} "${leaders};THALWEG_TEST_ALGORITHM=node_leader;THALWEG_TOPOLOGY=ranks:0,1,0,2,1" neighbours 8 24)
# Messages that outgrow what was agreed on.
set(slots "${with_persistent};THALWEG_ALLTOALLV=node_leader;THALWEG_TEST_LEVEL=single")
run(slots 4 ${inside_current} "${slots};${two_hosts}" slots)
run(slots_ragged 6 ${inside} "${slots};${ucx};THALWEG_TOPOLOGY=ranks:0,1,1,0,2,1" slots)
# Where there is nobody to lead for, everything goes straight; one rank alone is MPI's, and right under this one.
run(neighbours_leader_one_host 3 ${inside} "${leaders};${shm};THALWEG_TEST_ALGORITHM=spread" neighbours 4 25)
if(name STREQUAL mpich5)
  run(neighbours_leader_one 1 mpi "${leaders}" neighbours 4 26)
endif()
# Blocks keep their places where nothing is asked for: Intel MPI has an order of its own for them, Open MPI 5 in calls
# that do not block.
set(rings full)
if(name MATCHES "^(impi|openmpi5)$")
  set(rings mpi)
endif()
run(rings 4 ${rings} "THALWEG_TOPOLOGY=node:2 core:2" rings)
# The environment names transports, or devices, by which libucp gets nowhere: the operations run natively.
set(no_way full)
if(name STREQUAL mpich5)
  set(no_way mpi)
endif()
run(no_way 4 ${no_way} "THALWEG_TOPOLOGY=node:2 core:2;THALWEG_UCX_TLS=self" rings 12)
run(no_way_devices 4 full "THALWEG_TOPOLOGY=node:2 core:2;THALWEG_UCX_NET_DEVICES=nowhere0" rings 12)
# Of which several are under way, and what is sent overlaps.
run(overlaps_shm 3 ${inside} "${neighbours};${shm}" overlaps 60 21)
run(overlaps_two_hosts 4 ${inside} "${neighbours};${two_hosts};THALWEG_TEST_LEVEL=single" overlaps 40 22)
run(overlaps_ucx 3 full "${neighbours};${ucx};THALWEG_TEST_LEVEL=single" overlaps 100 23)
run(overlaps 3 full "${neighbours}" overlaps 100 24)
# Faces that lie behind MPI_BOTTOM.
run(absolute 3 ${inside_current} "${neighbours};${shm}" absolute)
run(absolute_two_hosts 4 ${inside} "${neighbours};${two_hosts};THALWEG_TEST_LEVEL=single" absolute)
run(absolute_mpi 3 full "${neighbours}" absolute)
# Random datatypes on random topologies, and another protocol inside hosts every now and then.
run(shapes_shm 3 ${inside} "${neighbours};${shm}" shapes 300 11)
run(shapes_two_hosts 4 ${inside} "${neighbours};${two_hosts};THALWEG_TEST_LEVEL=single" shapes 150 12)
run(shapes_leader 4 ${inside} "${by_leaders};${two_hosts}" shapes 60 16)
run(shapes 3 full "${neighbours}" shapes 3000 13)
if(name STREQUAL mpich5)
  # One hundred thousand.
  run(shapes_many_shm 4 full "${neighbours};${shm}" shapes 50000 14)
  run(shapes_many_two_hosts 4 full "${neighbours};${two_hosts};THALWEG_TEST_LEVEL=single" shapes 50000 15)
endif()
# Memory of a device: every way into a buffer, by messages, through memory, and both; with the driver that is here, and
# with a stand-in that is as strict.
set(gpu "${with_persistent};${chain};THALWEG_ALLGATHER=ring;THALWEG_ALLTOALLV=spread;THALWEG_SETUP=early")
run(gpu 2 full "${gpu}" gpu)
run(gpu_shm 3 full "${gpu};${shm}" gpu)
run(gpu_two_hosts 4 full "${gpu};${two_hosts};THALWEG_TEST_LEVEL=single" gpu)
run(strict_gpu 2 ${inside} "${gpu}" gpu $<TARGET_FILE:plan_strict_cuda>)
run(strict_gpu_shm 3 ${inside} "${gpu};${shm}" gpu $<TARGET_FILE:plan_strict_cuda>)
run(strict_gpu_two_hosts 4 ${inside} "${gpu};${two_hosts};THALWEG_TEST_LEVEL=single" gpu $<TARGET_FILE:plan_strict_cuda>)
# Faces whose mix changes in mid-run; and blocking forms where nothing is asked for.
set(halo "${with_persistent};THALWEG_TEST_TAKEN=1;THALWEG_ALLTOALLV=spread")
run(halo 3 ${inside_current} "${halo}" halo csl)
run(halo_shm 4 ${inside} "${halo};${shm}" halo cslg)
run(halo_two_hosts 4 ${inside_current} "${halo};${two_hosts};THALWEG_TEST_LEVEL=single" halo cswlgdmaA)
# Nothing is asked for: exchanges between neighbours go through the memory of their host.
string(REPLACE "THALWEG_TRANSPORT=shm;" "" two_hosts_auto "${two_hosts}")
run(halo_auto 4 ${inside} "${halo};${two_hosts_auto};THALWEG_TEST_LEVEL=single" halo cslg)
run(halo_trial 4 ${inside} "${with_persistent};THALWEG_TOPOLOGY=node:4 core:1;THALWEG_TEST_TAKEN=trial" halo t)
add_test(NAME plan.${name}.report_of_halo
         COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/report_halo.py ${CMAKE_CURRENT_BINARY_DIR}
                 ${MPI_MPIEXEC} -n 4 env ${with_persistent} THALWEG_ALLTOALLV=spread ${two_hosts_auto}
                 $<TARGET_FILE:plan_halo_${name}>)
# Communicators told apart, on two hosts of two ranks.
add_test(NAME plan.${name}.report_of_neighbours
         COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/report_neighbours.py ${CMAKE_CURRENT_BINARY_DIR}
                 ${MPI_MPIEXEC} -n 4 env ${with_persistent} THALWEG_SETUP=early THALWEG_ALLTOALLV=spread ${two_hosts_auto}
                 THALWEG_TEST_LEVEL=single $<TARGET_FILE:plan_patterns_${name}>)
set_tests_properties(plan.${name}.report_of_neighbours PROPERTIES LABELS ${inside_current} TIMEOUT 300 PROCESSORS 2
                     SKIP_RETURN_CODE 77 ENVIRONMENT "${plan_environment}")
add_test(NAME plan.${name}.killed_halo
         COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/ended.py ${MPI_MPIEXEC} -n 4 env ${preload}
                 THALWEG_ALLTOALLV=spread ${two_hosts} $<TARGET_FILE:plan_halo_${name}> k)
set_tests_properties(plan.${name}.report_of_halo plan.${name}.killed_halo PROPERTIES LABELS ${inside} TIMEOUT 300
                     PROCESSORS 2 ENVIRONMENT "${plan_environment}")
# Strided faces over one transport between ranks that are a host each: packed one by one, or piece by piece, as they are
# posted, and unpacked one by one as they come.
set(alone "${with_persistent};THALWEG_SETUP=early;THALWEG_TOPOLOGY=node:3 core:1;THALWEG_BARRIER=dissemination;THALWEG_AGENT=sleep")
run(face_by_face 3 ${inside_current} "${alone};THALWEG_TRANSPORT=mpi;THALWEG_ALLTOALLV=spread" face_by_face 32 64)
run(face_by_face_ucx 3 ${inside_current} "${alone};${ucx};THALWEG_TEST_LEVEL=single;THALWEG_ALLTOALLV=spread" face_by_face 32 64)
run(face_by_face_pieces 3 ${inside_current} "${alone};${ucx};THALWEG_TEST_LEVEL=single;THALWEG_BETWEEN=eager;THALWEG_ALLTOALLV=pairwise:chunk_bytes=32K" face_by_face 256 2048 pieces)
# The same where one host has two of the ranks, and exchanges with them go through the memory of their host and libucp.
set(ragged "${alone};THALWEG_TRANSPORT=shm;THALWEG_UCX_TLS=tcp,self;THALWEG_TOPOLOGY=ranks:0,1,1;THALWEG_TEST_LEVEL=single")
run(face_by_face_hosts 3 ${inside_current} "${ragged};THALWEG_ALLTOALLV=spread" face_by_face 32 64)
run(face_by_face_hosts_pieces 3 ${inside_current} "${ragged};THALWEG_BETWEEN=eager;THALWEG_ALLTOALLV=pairwise:chunk_bytes=32K" face_by_face 256 2048 pieces)
# Puts with ready and done signals, where the transport has them; over the MPI library the same steps are messages.
run(alltoalls_notify 3 mpi "${alltoalls};THALWEG_ALLTOALLV=notify" alltoalls)
run(alltoalls_notify_shm 3 ${inside_current} "${alltoalls};${shm};THALWEG_ALLTOALLV=notify" alltoalls)
run(alltoalls_notify_ucx 4 mpi "${alltoalls};${ucx};${two_by_two};THALWEG_ALLTOALLV=notify:in_flight=2;THALWEG_TEST_LEVEL=single" alltoalls 200)
# Without the hooks of UCX, which would hide the mappings that the program counts.
set(steady "${with_persistent};UCX_MEM_MMAP_HOOK_MODE=none")
run(steady_spread 3 mpi "${steady};${ucx};THALWEG_ALLTOALLV=spread;THALWEG_TEST_LEVEL=single" steady)
run(steady_strided 3 ${inside_current} "${steady};${ucx};THALWEG_ALLTOALLV=spread;THALWEG_TEST_LEVEL=single" steady strided)
run(steady_strided_mpi 3 ${inside_current} "${steady};THALWEG_TRANSPORT=mpi;THALWEG_ALLTOALLV=spread" steady strided)
foreach(over "" _shm)
  set(carrier ${ucx})
  if(over STREQUAL "_shm")
    set(carrier ${shm})
  endif()
  add_test(NAME plan.${name}.steady_notify${over}.3
           COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/report.py ${CMAKE_CURRENT_BINARY_DIR} puts
                   ${MPI_MPIEXEC} -n 3 env ${steady} ${carrier} THALWEG_ALLTOALLV=notify THALWEG_TEST_LEVEL=single
                   $<TARGET_FILE:plan_steady_${name}>)
  set_tests_properties(plan.${name}.steady_notify${over}.3 PROPERTIES LABELS ${inside_current} TIMEOUT 300 SKIP_RETURN_CODE 77
                       PROCESSORS 2 ENVIRONMENT "${plan_environment}")
endforeach()
# Inside one host, and on two: where messages come before their receives, and where rows are copied by the system.
foreach(faces "" strided rows)
  string(REGEX REPLACE "(.+)" "_\\1" of_faces "${faces}")
  run(steady_shm${of_faces} 3 ${inside_current} "${steady};${shm};THALWEG_ALLTOALLV=spread" steady ${faces})
  run(steady_two_hosts${of_faces} 4 ${inside_current} "${steady};${two_hosts};THALWEG_ALLTOALLV=spread;THALWEG_TEST_LEVEL=single" steady ${faces})
endforeach()
# An irregular type of many runs: whoever asks MPI again what it is made of is caught.
run(typed_once 3 ${inside_current} "${alltoalls};THALWEG_ALLGATHER=ring;THALWEG_ALLTOALLV=spread" typed_once)
run(steady_hosts 4 mpi "${steady};${two_by_two};THALWEG_ALLTOALLV=node_leader" steady)
# A rank is killed in the middle of a plan.
macro(run_killed way case label settings)
  set(test plan.${name}.killed_${case})
  add_test(NAME ${test} COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/ended.py ${MPI_MPIEXEC} -n 3 env
                                ${with_persistent} THALWEG_ALLTOALLV=${way} ${settings}
                                $<TARGET_FILE:plan_killed_${name}>)
  set_tests_properties(${test} PROPERTIES LABELS ${label} TIMEOUT 300 SKIP_RETURN_CODE 77 PROCESSORS 2
                       ENVIRONMENT "${plan_environment}")
endmacro()
run_killed(spread plan_shm ${inside_current} "${shm}")
run_killed(notify plan_ucx ${inside} "${ucx};THALWEG_TEST_LEVEL=single")
run_killed(spread plan_mpi full "THALWEG_TRANSPORT=mpi")
# Receives that are larger than what is sent, and one that is smaller: by every algorithm under one library, in shared
# memory, over libucp and by both; in the trial; and over the MPI library, which is told of truncation by some only.
set(unequal "${with_persistent};THALWEG_TEST_TAKEN=1")
run(unequal_spread 3 ${inside_current} "${unequal};THALWEG_ALLTOALLV=spread" unequal room)
run(unequal_shm 3 ${inside} "${unequal};${shm};THALWEG_ALLTOALLV=pairwise" unequal)
run(unequal_hosts 4 ${inside} "${unequal};${two_hosts};THALWEG_TEST_LEVEL=single;THALWEG_ALLTOALLV=pairwise:chunk_bytes=4K" unequal)
run(unequal_notify 3 ${inside} "${unequal};${ucx};THALWEG_ALLTOALLV=notify" unequal)
run(unequal_leader 4 full "${unequal};${two_hosts};THALWEG_TEST_LEVEL=single;THALWEG_ALLTOALLV=node_leader" unequal)
# Its blocking calls are the library's: Open MPI refuses some of them.
if(name STREQUAL mpich5)
  run(unequal_windows 2 full "${with_persistent};THALWEG_TEST_TAKEN=plans;THALWEG_ALLTOALLV=rma_get" unequal room)
endif()
# So does the trial's first half.
if(NOT name MATCHES "^openmpi")
  run(unequal_trial 3 ${inside} "THALWEG_TOPOLOGY=node:3 core:1;${with_persistent}" unequal room)
endif()
run(unequal_truncated 3 full "${unequal};THALWEG_ALLTOALLV=spread" unequal truncated)
# More than an int counts, and than the MPI library is given at a time else.
if(name MATCHES "^mpich")
  run(unequal_large 2 full "${unequal};THALWEG_TRANSPORT=mpi;THALWEG_ALLTOALLV=spread" unequal large 2500)
endif()
# Neighbours that do not agree on sizes, none included; what asks for puts is told that they do not.
set(edges "${unequal};THALWEG_SETUP=early")
run(edges_spread 3 ${inside} "${edges};THALWEG_ALLTOALLV=spread" edges room)
run(edges_shm 3 ${inside_current} "${edges};${shm};THALWEG_ALLTOALLV=pairwise:chunk_bytes=4K" edges)
run(edges_hosts 4 ${inside} "${edges};${two_hosts};THALWEG_TEST_LEVEL=single;THALWEG_ALLTOALLV=spread" edges)
run(edges_notify 4 ${inside} "${edges};${two_hosts};THALWEG_TEST_LEVEL=single;THALWEG_ALLTOALLV=notify" edges)
run(edges_leader 4 ${inside} "${edges};${two_hosts};THALWEG_TEST_LEVEL=single;THALWEG_ALLTOALLV=node_leader" edges room)
run(edges_ucx 3 full "${edges};${ucx};THALWEG_ALLTOALLV=notify" edges)
# Of a message that is longer than its receive Open MPI writes all, and of one of no bytes Intel MPI says nothing.
if(name MATCHES "^mpich")
  run(edges_truncated 3 full "${edges};THALWEG_ALLTOALLV=spread" edges truncated)
endif()
# In pieces, which say themselves where a message ends; over the MPI library, which does not say all, in one.
set(pieces "${edges};THALWEG_ALLTOALLV=pairwise:chunk_bytes=")
run(pieces_ucx 4 ${inside_current} "${pieces}4K;${ucx};THALWEG_TEST_LEVEL=single" pieces 4096)
run(pieces_shm 3 ${inside} "${pieces}4K;${shm}" pieces 4096)
run(pieces_hosts 4 ${inside} "${pieces}32K;${two_hosts};THALWEG_TEST_LEVEL=single" pieces 32768 20)
run(pieces_ahead 3 full "${pieces}256:ahead=7;${ucx};THALWEG_TEST_LEVEL=single" pieces 256 3000)
run(pieces_mpi 3 full "${pieces}4K" pieces 4096)
run(repeated_pieces 4 ${inside} "${alltoalls};${ucx};${two_by_two};THALWEG_ALLTOALLV=pairwise:chunk_bytes=1K;THALWEG_TEST_LEVEL=single" repeated)
# The blocking ones, again and again, while one rank alone changes its arguments; and the trial that decides.
run(repeated 3 mpi "${alltoalls};THALWEG_ALLTOALLV=spread" repeated)
run(repeated_ucx 4 mpi "${alltoalls};${ucx};${two_by_two};THALWEG_ALLTOALLV=pairwise;THALWEG_TEST_LEVEL=single" repeated)
run(repeated_notify 4 mpi "${alltoalls};${ucx};${two_by_two};THALWEG_ALLTOALLV=notify;THALWEG_TEST_LEVEL=single" repeated)
run(repeated_trial 3 mpi "THALWEG_TOPOLOGY=node:3 core:1;THALWEG_TEST_TAKEN=trial;${with_persistent}" repeated 200)
# What a set-up cost is noted once, whatever is tried later.
run(paid 2 ${inside} "${with_persistent};THALWEG_TOPOLOGY=node:2 core:1" paid)
