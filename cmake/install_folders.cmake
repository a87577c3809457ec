# Runs in front of all else that `cmake --install` does, and makes the folders that are not there yet. CMake would take
# from them what the umask says, though not from the files: a root with 077 would install what no user can reach. Other
# rights are asked for by `cmake --install --default-directory-permissions`.
if(NOT CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS)
  set(CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
      WORLD_EXECUTE)
endif()

function(thalweg_make_folder path)
  if(EXISTS "${path}")
    return()
  endif()
  get_filename_component(above "${path}" DIRECTORY)
  thalweg_make_folder("${above}")
  file(MAKE_DIRECTORY "${path}")
  file(CHMOD "${path}" PERMISSIONS ${CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS})
endfunction()

get_filename_component(thalweg_prefix "${CMAKE_INSTALL_PREFIX}" ABSOLUTE)
foreach(folder bin include/thalweg lib/cmake/thalweg lib/pkgconfig lib/thalweg share/doc/thalweg share/thalweg/bench
        share/thalweg/sim)
  get_filename_component(path "$ENV{DESTDIR}${thalweg_prefix}/${folder}" ABSOLUTE)  # DESTDIR may be relative
  thalweg_make_folder("${path}")
endforeach()
