/* The executable of a program whose every MPI call is in libraries. */
int application(int argc, char** argv);

int main(int argc, char** argv) { return application(argc, argv); }
