// SPDX-License-Identifier: Apache-2.0
// JSON beside a model that makes its loader open another file than the one that was looked at.
#include "formats/beside_json.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "checkpoint/value_json.h"

namespace ballast {
namespace {

constexpr const char* kConfigurations[] = {"config.json",
                                           "tokenizer_config.json",
                                           "adapter_config.json",
                                           "quantize_config.json",
                                           "generation_config.json",
                                           "config_sentence_transformers.json",
                                           "trainer_state.json",
                                           "params.json",
                                           "model_index.json",
                                           "model.safetensors.index.json"};

std::string why_not(const std::string& json, std::string_view name = "config.json") {
  return code_in_json(parse_json(json, "the test"), name);
}

/// As the value of a member, in a list, and deep inside.
std::vector<std::string> everywhere(const std::string& key, const std::string& text) {
  const std::string member = "{\"" + key + "\": \"" + text + "\"}";
  return {member, "{\"" + key + "\": [1, \"" + text + "\"]}", "{\"x\": [{\"y\": " + member + "}]}"};
}

TEST(BesideJson, APathThatLeadsOutOfTheFolderIsNotInertWhateverItsKey) {
  for (const std::string path : {"..",
                                 "../..",
                                 "../evil",
                                 "../../a folder/x",
                                 "a/../../b",
                                 "./..",
                                 "/etc/evil",
                                 "/x",
                                 "/a b/c",
                                 "~/x",
                                 "~you/x",
                                 R"(..\\x)",
                                 R"(a\\..\\..\\b)",
                                 R"(C:\\x)",
                                 "c:/x",
                                 R"(D:x\\y)",
                                 R"(\\\\host\\share)",
                                 R"(\\x\\y)",
                                 "file:///etc/x",
                                 "FILE:x"})
    for (const std::string key : {"backbone", "index_path", "passages_path", "base_model_name_or_path",
                                  "model_file_base_name", "tokenizer_file", "unheard_of"})
      for (const std::string& json : everywhere(key, path))
        for (const char* name : kConfigurations) EXPECT_NE(why_not(json, name), "") << name << ": " << json;
}

TEST(BesideJson, TextThatIsNoPathOutOfTheFolderIsInert) {
  for (const std::string text : {"org/name",    "model.safetensors",
                                 "./here",      "a/b",
                                 "...",         "a..b",
                                 "..a/b",       "/",
                                 "//",          "~",
                                 "~1.5B",       "</s>",
                                 "[/INST]",     "https://x.y/z",
                                 "A: yes/no",   "either/or .. both",
                                 "{{ x / y }}", "use ../there",
                                 "gelu",        "",
                                 "1/2",         "a\\nb",
                                 "text/plain",  "C:"})
    for (const std::string key : {"_name_or_path", "library_of_words", "unheard_of"})
      for (const std::string& json : everywhere(key, text)) EXPECT_EQ(why_not(json), "") << json;
}

// AutoModel.from_pretrained() of a folder with an adapter loads its base first, whosever that is: a folder
// nearby, or a repository of a hub.
TEST(BesideJson, AMemberThatNamesAnotherModelToLoadIsNotInert) {
  const auto members = [](const std::string& key, const std::string& value) {
    const std::string member = "{\"" + key + "\": " + value + "}";
    return std::vector<std::string>{member, "{\"text_config\": " + member + "}", "{\"x\": [" + member + "]}"};
  };
  for (const std::string key :
       {"base_model_name_or_path", "audio_tokenizer_name_or_path", "hf_model_name", "hf_tokenizer_name",
        "tokenizer_name_or_path", "vision_model_name_or_path", "prompt_tuning_init_state_dict_path",
        "shadow_model", "mm_vision_tower", "index_path", "passages_path"}) {
    for (const std::string value : {"\"org/name\"", "\"gpt2\"", "\"./here\"", "\"x\"", "\"https://x.y/z\""})
      for (const std::string& json : members(key, value))
        for (const char* name : kConfigurations) EXPECT_NE(why_not(json, name), "") << name << ": " << json;
    for (const std::string value : {"null", "\"\"", "false"})
      for (const std::string& json : members(key, value)) EXPECT_EQ(why_not(json), "") << json;
  }
  for (const std::string key : {"backbone", "timm_model_name"}) {
    for (const std::string value : {"\"org/name\"", "\"hf-hub:org/name\"", "\"local-dir:x\"", "\"./x\""})
      for (const std::string& json : members(key, value)) EXPECT_NE(why_not(json), "") << json;
    for (const std::string value : {"\"resnet50\"", "\"vit_base\"", "null", "{\"depth\": 3}"})
      for (const std::string& json : members(key, value)) EXPECT_EQ(why_not(json), "") << json;
  }
  for (const std::string& json : members("shadow_model", "\"mirror\"")) EXPECT_EQ(why_not(json), "") << json;
}

TEST(BesideJson, NotesOfWhereAModelCameFromAreNoPathsToOpen) {
  for (const std::string key : {"_name_or_path", "name_or_path", "special_tokens_map_file"})
    for (const std::string path :
         {"/home/user/checkpoint-500", "../checkpoint", "C:\\\\models\\\\x", "~/x"}) {
      const std::string member = "{\"" + key + "\": \"" + path + "\"}";
      EXPECT_EQ(why_not(member), "") << member;
      EXPECT_EQ(why_not("{\"text_config\": " + member + "}"), "") << member;
    }
}

TEST(BesideJson, TokensAreWordsAndNoPaths) {
  for (const std::string token : {"/", "../", "..", "/x", "~/x", "/no_think"}) {
    const std::string text = "\"" + token + "\"";
    for (const std::string& json :
         {R"({"added_tokens_decoder": {"5": {"content": )" + text + "}}}", "{\"bos_token\": " + text + "}",
          R"({"pad_token": {"content": )" + text + "}}", "{\"additional_special_tokens\": [" + text + "]}",
          R"({"extra_special_tokens": {"a": )" + text + "}}"})
      EXPECT_EQ(why_not(json, "tokenizer_config.json"), "") << json;
    for (const std::string key : {"bos_token", "image_token", "additional_special_tokens"})
      EXPECT_EQ(why_not("{\"" + key + "\": " + text + "}", "special_tokens_map.json"), "") << key;
    for (const char* name : {"tokenizer.json", "vocab.json", "added_tokens.json", "merges.json"})
      EXPECT_EQ(why_not("{\"a\": [" + text + "], " + text + ": 1}", name), "") << name;
  }
}

// transformers hands all members of this file to the tokenizer, over what its configuration says.
TEST(BesideJson, InAMapOfSpecialTokensNothingElseIsInert) {
  for (const std::string key : {"chat_template", "vocab_file", "tokenizer_file", "merges_file", "auto_map",
                                "tokens", "token", "bos_token_file", "unheard_of"})
    for (const std::string value :
         {R"("{{ x.__class__ }}")", R"("{{ x }}")", R"("../../x")", R"("x/vocab.txt")", "null", "{}", "1"})
      EXPECT_NE(
          why_not("{\"bos_token\": \"<s>\", \"" + key + "\": " + value + "}", "special_tokens_map.json"), "")
          << key << ": " << value;
  for (const std::string map :
       {R"({})", R"({"eos_token": "</s>", "pad_token": {"content": "os.abort", "lstrip": false}})",
        R"({"additional_special_tokens": ["<a>", {"content": "b.py"}], "extra_special_tokens": {"x": "y"}})"})
    EXPECT_EQ(why_not(map, "special_tokens_map.json"), "") << map;
}

// transformers takes these files in the place of the ones that every folder has.
TEST(BesideJson, AMemberThatNamesOtherFilesThanTheUsualOnesIsNotInert) {
  struct Member {
    std::string key;
    std::string usual;
  };
  for (const auto& [key, usual] :
       {Member{"transformers_weights", "model.safetensors"}, Member{"fast_tokenizer_files", "tokenizer.json"},
        Member{"model_file_base_name", "model"}}) {
    const std::string quoted = "\"" + usual + "\"";
    const std::vector<std::string> harmless = {"null", "[]", quoted, "[" + quoted + "]",
                                               "[" + quoted + ", " + quoted + "]"};
    for (const std::string& value : harmless) {
      const std::string json = "{\"" + key + "\": " + value + "}";
      EXPECT_EQ(why_not(json), "") << json;
    }
    const std::vector<std::string> others = {"\"x/other.safetensors\"",
                                             "\"pytorch_model.bin\"",
                                             "\"tokenizer.4.0.0.json\"",
                                             "\"\"",
                                             "1",
                                             "true",
                                             "{}",
                                             "{\"a\": " + quoted + "}",
                                             "\"./" + usual + "\"",
                                             "\" " + usual + "\"",
                                             "[" + quoted + ", \"tokenizer.4.0.0.json\"]",
                                             "[[" + quoted + "]]",
                                             "[null]"};
    for (const std::string& value : others) {
      const std::string member = "{\"" + key + "\": " + value + "}";
      for (const std::string& json : {member, "{\"text_config\": " + member + "}", "[" + member + "]"})
        for (const char* name : {"config.json", "tokenizer_config.json", "quantize_config.json"})
          EXPECT_NE(why_not(json, name), "") << name << ": " << json;
    }
  }
}

}  // namespace
}  // namespace ballast
