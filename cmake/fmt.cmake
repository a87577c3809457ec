# thalweg_fmt: fmt for programs that do not load it. Each file that includes all of its code takes two seconds more to
# compile; fmt.cpp makes that an object of its own, where it knows which templates this version of fmt wants there.
find_package(fmt REQUIRED)
if(fmt_VERSION VERSION_GREATER_EQUAL 9 AND fmt_VERSION VERSION_LESS 10)
  add_library(thalweg_fmt STATIC cmake/fmt.cpp)
  get_target_property(folders fmt::fmt-header-only INTERFACE_INCLUDE_DIRECTORIES)
  target_include_directories(thalweg_fmt SYSTEM PUBLIC ${folders})
else()
  add_library(thalweg_fmt INTERFACE)
  target_link_libraries(thalweg_fmt INTERFACE fmt::fmt-header-only)
endif()
