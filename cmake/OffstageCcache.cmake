# Compiles through ccache where there is one; a user's own launcher wins.
find_program(OFFSTAGE_CCACHE ccache)
if(OFFSTAGE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${OFFSTAGE_CCACHE}")
endif()
