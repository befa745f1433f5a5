# Flags of our own builds: every target of ours calls ballast_own(target).
function(ballast_own target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow
                         # g++ 12 at -O3 sees overlaps in "a" + std::string that cannot be (GCC bug 105329).
                         $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
  # Sources compiled together are included by one, and g++ takes what is included for headers.
  if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
  # clang 14 forgets which temporaries exist when a consteval call (fmt's check of format strings) stands in the same expression as
  # they do, and destroys strings that were never made. g++ checks the format strings.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 15)
    target_compile_definitions(${target} PRIVATE FMT_CONSTEVAL=)
  endif()
  if(BALLAST_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(BALLAST_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=${BALLAST_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${BALLAST_SANITIZE})
    # g++ and clang name their sanitizers by different macros.
    if(BALLAST_SANITIZE MATCHES "address|thread")
      target_compile_definitions(${target} PRIVATE BALLAST_SANITIZED)
    endif()
  endif()
endfunction()

# For the libraries users link. What is exported is what public headers declare between `#pragma GCC visibility push(default)` and pop,
# and the few inner headers that one library of ours shares with another: scripts/check-layers. Below 1.0 every minor version has an ABI of its own.
function(ballast_library target)
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden VERSION ${PROJECT_VERSION}
                        SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} INSTALL_RPATH $ORIGIN)
  target_compile_options(${target} PRIVATE -fno-semantic-interposition)
  if(BUILD_SHARED_LIBS)
    # Nothing of the static libraries in it, and nothing left undefined.
    target_link_options(${target} PRIVATE LINKER:--exclude-libs,ALL LINKER:--no-undefined)
  endif()
endfunction()

# For libraries that become part of shared ones, Python's module among them. Functions call each other directly all the same.
function(ballast_relocatable target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()
