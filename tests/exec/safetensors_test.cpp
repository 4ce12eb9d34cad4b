#include "exec/safetensors.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "exec/bf16.h"
#include "platform/error.h"

namespace offstage::exec {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "offstage-safetensors-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() { fs::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

void write_raw(const std::string& path, const std::string& header, const std::string& data) {
  std::ofstream out(path, std::ios::binary);
  const std::uint64_t length = header.size();
  out.write(reinterpret_cast<const char*>(&length), sizeof length);
  out << header << data;
}

std::string bytes_of(const std::vector<std::uint16_t>& values) {
  std::string text(2 * values.size(), '\0');
  std::memcpy(text.data(), values.data(), text.size());
  return text;
}

const std::vector<workloads::ParameterTensor> kTensors{{"a", {2, 3}}, {"b", {5}}, {"c", {1}}};

// Element e of tensor t is 10 t + e + 0.5: exact in every type.
void fill(std::size_t index, std::int64_t first, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] =
        static_cast<float>(10 * index) + static_cast<float>(first) + static_cast<float>(i) + 0.5F;
  }
}

TEST_CASE("what is written is read back, in one file or several, in every type", "[exec]") {
  for (const auto type : {StoredType::f32, StoredType::f16, StoredType::bf16}) {
    // 12 elements in all: with 20 bytes a file, f32 needs three and 16-bit types two.
    for (const std::int64_t largest : {std::int64_t{1000}, std::int64_t{20}}) {
      const Folder folder;
      write_safetensors(folder.path(), kTensors, {type, largest}, fill);
      CHECK(fs::exists(folder.file("model.safetensors.index.json")) == (largest == 20));
      const SafetensorsReader in(folder.path());
      CHECK(in.size() == 3);
      CHECK(in.at("a").shape == std::vector<std::int64_t>{2, 3});
      std::vector<float> part(4);
      in.read(in.at("b"), 1, part);
      CHECK(part == std::vector<float>{11.5F, 12.5F, 13.5F, 14.5F});
    }
  }
}

TEST_CASE("bf16 and f16 are known values", "[exec]") {
  const Folder folder;
  // bf16: 1.0 is 0x3F80, -2.5 is 0xC020. f16: 1.0 is 0x3C00, the smallest subnormal 0x0001 is
  // 2^-24.
  const std::string header = R"({"x":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},)"
                             R"("y":{"dtype":"F16","shape":[2],"data_offsets":[4,8]}})";
  write_raw(folder.file("m.safetensors"), header, bytes_of({0x3F80, 0xC020, 0x3C00, 0x0001}));
  const SafetensorsReader in(folder.file("m.safetensors"));
  std::vector<float> out(2);
  in.read(in.at("x"), 0, out);
  CHECK(out == std::vector<float>{1.0F, -2.5F});
  in.read(in.at("y"), 0, out);
  CHECK(out == std::vector<float>{1.0F, std::ldexp(1.0F, -24)});
}

TEST_CASE("bf16 rounds to nearest, ties to even, and keeps what is no number", "[exec]") {
  CHECK(to_bf16(1.0F) == 0x3F80);
  // A bf16's last bit at 1 is 2^-7. Halfway between 1 and 1 + 2^-7: to the even one, 1. Halfway
  // between 1 + 2^-7 and 1 + 2^-6: to the even one, 1 + 2^-6.
  CHECK(to_bf16(1.0F + std::ldexp(1.0F, -8)) == 0x3F80);
  CHECK(to_bf16(1.0F + std::ldexp(3.0F, -8)) == 0x3F82);
  CHECK(std::isnan(from_bf16(to_bf16(std::nanf("")))));
  CHECK(std::isinf(from_bf16(to_bf16(INFINITY))));
}

TEST_CASE("a malformed file is refused by name", "[exec]") {
  const Folder folder;
  const std::string path = folder.file("bad.safetensors");
  const auto refused = [&path](const std::string& header, const std::string& data,
                               const std::string& why) {
    write_raw(path, header, data);
    CHECK_THROWS_WITH(SafetensorsReader(path),
                      Catch::Contains("bad.safetensors") && Catch::Contains(why));
  };
  refused("{", "", "no safetensors file");
  refused("[]", "", "no JSON object");
  refused(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "1234", "[0, 8) of 4");
  refused(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "1234", "shape needs 8");
  refused(R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
          R"("y":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})",
          "123456", "overlap");
  refused(R"({"x":{"dtype":"F32"}})", "", "'data_offsets' not found");
  std::ofstream(path, std::ios::binary) << "\xff\xff\xff\xff\xff\xff\xff\xff";
  CHECK_THROWS_WITH(SafetensorsReader(path), Catch::Contains("header would be"));
  std::ofstream(path, std::ios::binary) << "123";
  CHECK_THROWS_WITH(SafetensorsReader(path), Catch::Contains("shorter"));
  CHECK_THROWS_WITH(SafetensorsReader(folder.file("none")), Catch::Contains("can't be opened"));
  CHECK_THROWS_WITH(SafetensorsReader(folder.path()), Catch::Contains("neither model.safetensors"));
}

TEST_CASE("a tensor that is missing or of another type is named", "[exec]") {
  const Folder folder;
  write_raw(folder.file("m.safetensors"),
            R"({"weight":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}})", "12345678");
  const SafetensorsReader in(folder.file("m.safetensors"));
  CHECK_THROWS_WITH(in.at("wieght"), Catch::Contains("nearest is 'weight'"));
  CHECK_THROWS_WITH(in.at("weight"), Catch::Contains("I64"));
}

TEST_CASE("who fails while writing leaves the file that was there", "[exec]") {
  const Folder folder;
  write_safetensors(folder.path(), kTensors, {}, fill);
  const auto before = fs::file_size(folder.file("model.safetensors"));
  const auto fail = [](std::size_t index, std::int64_t, std::span<float>) {
    if (index == 1) throw Error(ErrorCode::io, "disk full");
  };
  CHECK_THROWS_WITH(write_safetensors(folder.path(), kTensors, {}, fail),
                    Catch::Contains("disk full"));
  CHECK(fs::file_size(folder.file("model.safetensors")) == before);
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator{}) == 1);
}

}  // namespace
}  // namespace offstage::exec
