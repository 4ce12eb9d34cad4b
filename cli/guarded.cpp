#include "cli/guarded.h"

#include <cstdio>
#include <exception>
#include <new>

#include <fmt/format.h>

#include "cli/command.h"
#include "platform/error.h"

namespace offstage::cli {
namespace {

int exit_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::bad_usage:
    case ErrorCode::bad_input:
      return kBadInput;
    case ErrorCode::does_not_fit:
      return kAnswerIsNo;
    case ErrorCode::out_of_memory:
    case ErrorCode::device:
    case ErrorCode::io:
      break;
  }
  return kFailed;
}

}  // namespace

int complain(const std::string& message, int status) {
  fmt::print(stderr, "offstage: {}\n", message);
  return status;
}

int guarded(const std::function<int()>& body) {
  try {
    return body();
  } catch (const Error& error) {
    return complain(error.what(), exit_status(error.code()));
  } catch (const std::bad_alloc&) {
    return complain("out of memory", kFailed);
  } catch (const std::exception& error) {
    return complain(error.what(), kFailed);
  }
}

}  // namespace offstage::cli
