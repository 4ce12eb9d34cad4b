# Every third-party package, found once. Targets to link:
#   yaml-cpp  nlohmann_json::nlohmann_json  CLI11::CLI11  fmt::fmt  spdlog::spdlog  Threads::Threads
#   PkgConfig::SIMGRID  PkgConfig::HWLOC  PkgConfig::NUMA  PkgConfig::XXHASH
#   PkgConfig::URING (with OFFSTAGE_EXEC)
#   Catch2::Catch2 (tests)
#   LibTorch::cpu (with OFFSTAGE_EXEC)
find_package(Threads REQUIRED)
find_package(yaml-cpp 0.7 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(spdlog 1.10 REQUIRED)
find_package(NLopt 2.7 REQUIRED)

# None of these ships a CMake package in Debian.
find_package(PkgConfig REQUIRED)
pkg_check_modules(SIMGRID REQUIRED IMPORTED_TARGET GLOBAL simgrid>=3.32)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET GLOBAL hwloc>=2.9)
pkg_check_modules(NUMA REQUIRED IMPORTED_TARGET GLOBAL numa)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET GLOBAL libxxhash)

if(OFFSTAGE_TESTS)
  find_package(Catch2 2.13 REQUIRED)
endif()
if(OFFSTAGE_EXEC)
  pkg_check_modules(URING REQUIRED IMPORTED_TARGET GLOBAL liburing)
  if(OFFSTAGE_CUDA)
    set(offstage_torch_components COMPONENTS cuda)
  endif()
  find_package(LibTorch REQUIRED ${offstage_torch_components})
endif()
