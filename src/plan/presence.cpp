#include "plan/presence.h"

#include <cstdio>
#include <cstring>
#include <chrono>

#include "plan/launcher_store.h"
#include "thalweg/thalweg.h"
#include "transport/mpi/host.h"

namespace thalweg {
LauncherStore store;
void announce_presence() {
auto t=std::chrono::steady_clock::now();
bool ok=store.write("0.1.0");
fprintf(stderr,"announce %d %.1f us\n",ok,std::chrono::duration<double>(std::chrono::steady_clock::now()-t).count()*1e6);
}
Presence find_presence(double) { 
int r,p; host()->Comm_size(host()->comm_world,&p); host()->Comm_rank(host()->comm_world,&r);
auto t=std::chrono::steady_clock::now();
int c[3]={};
for(int i=0;i<p;i++){char w[64];c[(int)store.read(i,w,64)]++;}
fprintf(stderr,"rank %d present %d absent %d failed %d %.1f us\n",r,c[0],c[1],c[2],std::chrono::duration<double>(std::chrono::steady_clock::now()-t).count()*1e6);
store.close();
return c[0]==p?Presence::all:Presence::some; }
const char* presence_reason() { return "x"; }
void set_interception_complete(bool) {}
}  // namespace thalweg
