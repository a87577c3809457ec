# The preload objects of the preset `debug` want AddressSanitizer's runtime in front, in programs that have none. Leaks are the
# MPI library's; memory of our operator new is freed by free().
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=address")
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libasan.so OUTPUT_VARIABLE runtime
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  string(APPEND runtime ":")
  list(APPEND plan_environment ASAN_OPTIONS=detect_leaks=0:alloc_dealloc_mismatch=0:verify_asan_link_order=0)
endif()
