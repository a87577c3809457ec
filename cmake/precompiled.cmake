# Headers that nearly every file of a group includes are parsed once for the group: the standard library's, and other
# people's. Files include what they use all the same; the checking presets, which compile without this
# (CMAKE_DISABLE_PRECOMPILE_HEADERS), tell when one does not.
set(THALWEG_STANDARD_HEADERS algorithm array atomic cstdint cstring memory mutex optional span string string_view
    unordered_map utility vector)

# ccache keeps what was compiled with precompiled headers only where it may take them for what they were made of
# (scripts/build), and where the compiler says which it used.
if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache" AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
endif()

# Through precompiled headers g++ 12 warns of the inside of std::string, as it does where it inlines much (its bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13
   AND NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds> $<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overflow>)
endif()

# thalweg_precompile(target group [header…]): the first target of a group compiles the standard headers and those named,
# the others use them: their options must be the same.
function(thalweg_precompile target group)
  get_property(first GLOBAL PROPERTY thalweg_precompiled_${group})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    set_property(GLOBAL PROPERTY thalweg_precompiled_${group} ${target})
    set(headers ${THALWEG_STANDARD_HEADERS} ${ARGN})
    list(TRANSFORM headers REPLACE "^.+$" "$<$<COMPILE_LANGUAGE:CXX>:<\\0$<ANGLE-R>>")
    target_precompile_headers(${target} PRIVATE ${headers})
  endif()
endfunction()
