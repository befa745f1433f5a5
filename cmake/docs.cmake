# The reference of the public headers: cmake --build --preset release --target docs (build/release/reference/html/index.html).
find_package(Doxygen QUIET)
if(NOT DOXYGEN_FOUND)
  return()
endif()

set(DOXYGEN_PROJECT_NAME Ballast)
set(DOXYGEN_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/reference)
set(DOXYGEN_STRIP_FROM_PATH ${PROJECT_SOURCE_DIR}/include)
set(DOXYGEN_INPUT_FILTER "awk -f ${CMAKE_CURRENT_LIST_DIR}/file_comment.awk")
# The parts of nn.h and ops.h, LayerKind and Attributes are what users meet; the rest of detail/ is not.
set(DOXYGEN_EXCLUDE_PATTERNS */detail/reflect* */detail/name_index.h */detail/slots.h */detail/collect.h */detail/copied.h)
set(DOXYGEN_EXCLUDE_SYMBOLS ballast::detail ballast::*::detail)
set(DOXYGEN_EXTRACT_ALL YES)
set(DOXYGEN_SORT_MEMBER_DOCS NO)
set(DOXYGEN_HAVE_DOT NO)
set(DOXYGEN_QUIET YES)
# A name that says it needs no comment; what is said must be right.
set(DOXYGEN_WARN_IF_UNDOCUMENTED NO)
set(DOXYGEN_WARN_AS_ERROR FAIL_ON_WARNINGS)
doxygen_add_docs(docs ${PROJECT_SOURCE_DIR}/include/ballast COMMENT "The reference of the public headers")
