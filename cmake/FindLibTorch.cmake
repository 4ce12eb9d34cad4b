# LibTorch from a PyTorch wheel, as imported targets. PyTorch's own package file is not used: it
# probes GPU architectures in a way CMake 3.25 does not know and links every CUDA library.
#
#   LibTorch::cpu      headers, libtorch_cpu, libc10
#   LibTorch::cuda     also libtorch_cuda, libc10_cuda, the CUDA runtime and NCCL; asked for with
#                      find_package(LibTorch COMPONENTS cuda)
#   LibTorch_PYTHON    the Python that can import this torch (variable)
#
# -DLIBTORCH=DIR takes another PyTorch: DIR holds include/ and lib/ (in Python: torch.__path__[0]).
# Without it, the one scripts/setup.sh put into the user's cache folder is taken.
set(offstage_torch_version 2.11.0)
if(DEFINED ENV{XDG_CACHE_HOME} AND NOT "$ENV{XDG_CACHE_HOME}" STREQUAL "")
  set(offstage_cache "$ENV{XDG_CACHE_HOME}/offstage")
else()
  set(offstage_cache "$ENV{HOME}/.cache/offstage")
endif()
file(GLOB offstage_venv_torch
     "${offstage_cache}/venv-torch-${offstage_torch_version}/lib/python3*/site-packages/torch")

set(LIBTORCH "" CACHE PATH "A PyTorch folder to use instead of the one scripts/setup.sh installs")
if(LIBTORCH)
  set(LibTorch_ROOT_DIR "${LIBTORCH}")
elseif(offstage_venv_torch)
  list(GET offstage_venv_torch 0 LibTorch_ROOT_DIR)
else()
  set(LibTorch_ROOT_DIR "")
endif()

# Looked up anew each time: a cached path would outlive a change of LIBTORCH.
set(offstage_torch_args PATHS "${LibTorch_ROOT_DIR}" NO_DEFAULT_PATH NO_CACHE)
find_path(LibTorch_INCLUDE_DIR ATen/ATen.h ${offstage_torch_args} PATH_SUFFIXES include)
find_library(LibTorch_CPU_LIBRARY torch_cpu ${offstage_torch_args} PATH_SUFFIXES lib)
find_library(LibTorch_C10_LIBRARY c10 ${offstage_torch_args} PATH_SUFFIXES lib)

# libtorch_cpu of a CUDA wheel needs libcudart and libcupti, even where there is no GPU: from the
# CUDA toolkit, or from NVIDIA's wheels beside torch (which torch's own rpath knows as well).
set(offstage_cuda_library_dirs
    "${LibTorch_ROOT_DIR}/../nvidia/cu13/lib"
    /usr/local/cuda/lib64
    /usr/local/cuda/extras/CUPTI/lib64)
set(LibTorch_RUNTIME_DIRS "${LibTorch_ROOT_DIR}/lib")
foreach(directory IN LISTS offstage_cuda_library_dirs)
  if(IS_DIRECTORY "${directory}")
    file(REAL_PATH "${directory}" directory)
    list(APPEND LibTorch_RUNTIME_DIRS "${directory}")
  endif()
endforeach()

# CUDA's and NCCL's headers and libraries: NVIDIA's wheels, which torch was built with, or else the
# toolkit. No nvcc: there are no kernels of our own.
set(offstage_nvidia "${LibTorch_ROOT_DIR}/../nvidia")
set(offstage_libtorch_required LibTorch_INCLUDE_DIR LibTorch_CPU_LIBRARY LibTorch_C10_LIBRARY)
if("cuda" IN_LIST LibTorch_FIND_COMPONENTS)
  set(offstage_toolkit PATHS "${offstage_nvidia}/cu13" "${offstage_nvidia}/nccl" /usr/local/cuda
                       NO_DEFAULT_PATH NO_CACHE)
  find_path(LibTorch_CUDA_INCLUDE_DIR cuda_runtime_api.h ${offstage_toolkit} PATH_SUFFIXES include)
  find_path(LibTorch_NCCL_INCLUDE_DIR nccl.h ${offstage_toolkit} PATH_SUFFIXES include)
  find_library(LibTorch_CUDART_LIBRARY NAMES libcudart.so.13 ${offstage_toolkit}
               PATH_SUFFIXES lib lib64)
  find_library(LibTorch_NCCL_LIBRARY NAMES libnccl.so.2 libnccl.so ${offstage_toolkit}
               PATH_SUFFIXES lib lib64)
  find_library(LibTorch_CUDA_LIBRARY torch_cuda ${offstage_torch_args} PATH_SUFFIXES lib)
  find_library(LibTorch_C10_CUDA_LIBRARY c10_cuda ${offstage_torch_args} PATH_SUFFIXES lib)
  list(APPEND offstage_libtorch_required LibTorch_CUDA_INCLUDE_DIR LibTorch_NCCL_INCLUDE_DIR
       LibTorch_CUDART_LIBRARY LibTorch_NCCL_LIBRARY LibTorch_CUDA_LIBRARY
       LibTorch_C10_CUDA_LIBRARY)
  # What libtorch_cuda needs lies beside: cudnn, cusparselt, nvshmem ...
  file(GLOB offstage_wheel_libraries "${offstage_nvidia}/*/lib")
  foreach(directory IN LISTS offstage_wheel_libraries)
    file(REAL_PATH "${directory}" directory)
    list(INSERT LibTorch_RUNTIME_DIRS 1 "${directory}")  # before a toolkit's of another version
  endforeach()
  list(REMOVE_DUPLICATES LibTorch_RUNTIME_DIRS)
endif()

# The Python whose torch this is, for tests that compare with PyTorch: DIR is
# VENV/lib/python3.N/site-packages/torch. Debian's own where the folder lies elsewhere.
cmake_path(APPEND LibTorch_ROOT_DIR "../../../../bin/python" OUTPUT_VARIABLE LibTorch_PYTHON)
cmake_path(NORMAL_PATH LibTorch_PYTHON)
if(NOT EXISTS "${LibTorch_PYTHON}")
  set(LibTorch_PYTHON python3)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  LibTorch
  REQUIRED_VARS ${offstage_libtorch_required}
  REASON_FAILURE_MESSAGE
    "Run scripts/setup.sh (with --gpu for the preset gpu), name a PyTorch with -DLIBTORCH=DIR, or leave training out with -DOFFSTAGE_EXEC=OFF.")

if(LibTorch_FOUND AND NOT TARGET LibTorch::cpu)
  add_library(LibTorch::c10 SHARED IMPORTED)
  set_target_properties(LibTorch::c10 PROPERTIES IMPORTED_LOCATION "${LibTorch_C10_LIBRARY}")
  # Searched last: the wheel carries headers of other libraries (fmt 12, nlohmann) that must not
  # take the place of the system's, whose libraries we link.
  target_compile_options(
    LibTorch::c10
    INTERFACE "SHELL:-idirafter \"${LibTorch_INCLUDE_DIR}\""
              "SHELL:-idirafter \"${LibTorch_INCLUDE_DIR}/torch/csrc/api/include\"")
  add_library(LibTorch::cpu SHARED IMPORTED)
  set_target_properties(LibTorch::cpu PROPERTIES IMPORTED_LOCATION "${LibTorch_CPU_LIBRARY}")
  target_link_libraries(LibTorch::cpu INTERFACE LibTorch::c10 Threads::Threads)
  # The build tree finds the libraries through its rpath; -rpath-link lets the linker check symbols
  # of libraries that libtorch_cpu needs and we do not name.
  # DT_RPATH, not DT_RUNPATH: only that also serves the libraries libtorch_cpu itself needs.
  foreach(directory IN LISTS LibTorch_RUNTIME_DIRS)
    target_link_options(LibTorch::cpu INTERFACE "LINKER:-rpath-link,${directory}"
                        "LINKER:-rpath,${directory}")
  endforeach()
  target_link_options(LibTorch::cpu INTERFACE "LINKER:--disable-new-dtags")
endif()

if(LibTorch_CUDA_LIBRARY AND NOT TARGET LibTorch::cuda)
  add_library(LibTorch::cuda INTERFACE IMPORTED)
  target_include_directories(LibTorch::cuda SYSTEM INTERFACE "${LibTorch_CUDA_INCLUDE_DIR}"
                                                             "${LibTorch_NCCL_INCLUDE_DIR}")
  # libtorch_cuda registers its kernels when it is loaded; nothing of ours names a symbol of it.
  # What it needs in turn is found when it runs; the linker need not see the driver's library.
  target_link_libraries(
    LibTorch::cuda
    INTERFACE LibTorch::cpu "-Wl,--no-as-needed" "${LibTorch_CUDA_LIBRARY}" "-Wl,--as-needed"
              "${LibTorch_C10_CUDA_LIBRARY}" "${LibTorch_CUDART_LIBRARY}"
              "${LibTorch_NCCL_LIBRARY}" "-Wl,--allow-shlib-undefined")
endif()
