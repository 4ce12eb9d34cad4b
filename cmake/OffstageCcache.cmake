# Compiles through ccache where there is one; a user's own launcher wins. Paths are hashed relative
# to the checkout and the build folder is not hashed, so that presets with equal flags (release and
# gpu), and several checkouts, compile a source once. The price: debug information may name the
# folder of whichever build came first.
find_program(OFFSTAGE_CCACHE ccache)
if(OFFSTAGE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(OFFSTAGE_ENV env REQUIRED)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${OFFSTAGE_ENV}" "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}"
                                  CCACHE_NOHASHDIR=1 "${OFFSTAGE_CCACHE}")
endif()
