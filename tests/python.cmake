# The Python of all tests is as new as scripts/setup wants it: the first on PATH, as that of a Conda environment, may be
# older. Where none is new enough it is the one that scripts/setup was given.
find_package(Python3 3.11 QUIET COMPONENTS Interpreter)
set(thalweg_python ${CMAKE_CURRENT_LIST_DIR}/../.venv/bin/python)
if(NOT Python3_Interpreter_FOUND AND EXISTS ${thalweg_python})
  get_filename_component(Python3_EXECUTABLE ${thalweg_python} ABSOLUTE)
endif()
