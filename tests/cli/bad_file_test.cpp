#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "bad_input.h"
#include "tests/platform/small_machine.h"

using namespace offstage::tests;

TEST_CASE("a file that is none is refused by every command that reads one", "[cli][unit]") {
  const Workspace workspace;
  const std::vector<BadFile> files{
      {"empty.yaml", "", "empty"},
      {"blank.yaml", "  \n\n", "empty"},
      {"comment.yaml", "# nothing\n", "nothing but comments"},
      {"list.yaml", "- 1\n- 2\n", "expected a map"},
      {"word.yaml", "hello\n", "expected a map"},
      {"tab.yaml", "platform:\n\tname: host\n", "tab.yaml:2:"},
      {"binary.yaml", std::string("platform: \0\1\2", 13), "binary.yaml"},
      {"alias.yaml", "platform: &a {name: host}\nworkload: *a\n", "alias.yaml"},
      {"truncated.json", R"({"platform": "host", "workload": {)", "truncated.json:1:"},
      {"comma.json", "{\"platform\": \"host\",\n}", "comma.json:2:"},
      {"comment.json", "{\n// no\n}", "comment.json:2:"},
      {"python.json", "{\"a\": True}", "python.json:1:"},
      {"nan.json", "{\"a\": NaN}", "nan.json:1:"},
      {"deep.json", std::string(5000, '[') + std::string(5000, ']'), "deep.json"},
  };
  for (const char* command : {"plan", "simulate"}) check_files(workspace, command, files);
  check_files(workspace, "platform", {files[0], files[3], files[5]});
}

TEST_CASE("missing files and folders are refused", "[cli][unit]") {
  const Workspace workspace;
  for (const char* command : {"plan", "simulate", "platform", "workload"}) {
    CAPTURE(command);
    check_refused(workspace.run({command, "no/such/file.yaml"}), {"no/such/file.yaml"});
    check_refused(workspace.run({command, "./"}), {"./"});
  }
  check_refused(workspace.run({"compare", "no/a.json", "no/b.json"}), {"no/a.json"});
}

TEST_CASE("names nobody knows are refused with those that exist", "[cli][unit]") {
  const Workspace workspace;
  check_refused(workspace.run({"platform", "dgx-a100-41"}),
                {"dgx-a100-41", "did you mean 'dgx-a100-40'?"});
  check_refused(workspace.run({"workload", "gpt2-xk"}), {"gpt2-xk", "gpt2-xl"});
}

TEST_CASE("a machine file with one fault is refused with place and remedy", "[cli][unit]") {
  const Workspace workspace;
  check_edits(
      workspace, {"node.yaml", offstage::platform::small_node(), {"platform", "node.yaml"}},
      {
          {"kind: node", "kind: cluster", "kind:", "expected one of node, virtual"},
          {"parent: socket0", "parent: switch0", "  - {name: switch0", "cycle"},
          {"parent: socket0", "parent: sockt0", "  - {name: switch0", "'socket0'"},
          {"value: 20e9", "value: -20e9", "    down_bytes_per_s", "from 1 to"},
          {"value: 20e9", "value: fast", "    down_bytes_per_s", "a number"},
          {"source: test, confidence: assumed", "confidence: assumed", "copy_latency_s",
           "'source' is missing"},
          {"memory_bytes: {value: 8GiB", "memory_bytes: {value: 8 gigs", "    memory_bytes", "GiB"},
          {"- kind: all_gather", "- kind: gather", "  - kind: gather", "all_gather"},
      });
  const std::string good = offstage::platform::small_virtual();
  check_edits(workspace, {"virtual.yaml", good, {"platform", "virtual.yaml"}},
              {
                  {"virtual_gpus: 2", "virtual_gpus: 0", "virtual_gpus", "from 1 to"},
                  {"virtual_gpus: 2", "virtual_gpus: two", "virtual_gpus", "whole number"},
                  {"cores: 2", "cores: -2", "cores", "from 1 to"},
                  {"copy_throttle_", "copy_throtle_", "copy_throtle_", "copy_throttle_"},
              });
}

TEST_CASE("a model's config with one fault is refused with place and remedy", "[cli][unit]") {
  const Workspace workspace;
  const std::string good = R"({
  "architectures": ["LlamaForCausalLM"],
  "model_type": "llama",
  "hidden_size": 64,
  "intermediate_size": 128,
  "max_position_embeddings": 128,
  "num_attention_heads": 4,
  "num_hidden_layers": 2,
  "num_key_value_heads": 2,
  "rms_norm_eps": 1e-5,
  "tie_word_embeddings": false,
  "vocab_size": 256
})";
  check_edits(
      workspace, {"config.json", good, {"workload", "config.json"}},
      {
          {"LlamaForCausalLM", "LamaForCausalLM", "  \"architectures\"", "LlamaForCausalLM"},
          {"[\"LlamaForCausalLM\"]", "\"LlamaForCausalLM\"", "  \"architectures\"", "list"},
          {"\"hidden_size\": 64", "\"hidden_size\": \"64\"", "  \"hidden_size\"", "whole number"},
          {"\"hidden_size\": 64", "\"hidden_size\": -64", "  \"hidden_size\"", "from 1 to"},
          {"\"hidden_size\": 64", "\"hidden_size\": 1e30", "  \"hidden_size\"", "from 1 to"},
          {"\"hidden_size\": 64", "\"hidden_size\": 66", "  \"num_attention_heads\"",
           "choose a number of heads that divides it"},
          {"  \"hidden_size\": 64,\n", "", "{", "hidden_size is missing"},
          {"\"num_attention_heads\": 4", "\"num_attention_heads\": 0", "  \"num_attention_heads\"",
           "from 1 to"},
          {"\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3", "  \"num_key_value_heads\"",
           "3"},
          {"\"num_hidden_layers\": 2", "\"num_hidden_layers\": null", "{", "num_hidden_layers"},
          {"\"vocab_size\": 256", "\"vocab_size\": [256]", "  \"vocab_size\"", "a list"},
          {"\"tie_word_embeddings\": false", "\"tie_word_embeddings\": \"no\"",
           "  \"tie_word_embeddings\"", "true or false"},
          {"\"vocab_size\": 256", "\"vocab_size\": 256,", "}", "config.json"},
      });
}
