// Formats the Luau files below the given folders with StyLua, as stylua.toml says.
// StyLua's npm package carries WebAssembly and no command line, so this is one.
//
// usage: STYLUA_PACKAGE=… node format.mjs [--check] FOLDER...

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const stylua = createRequire(import.meta.url)(process.env.STYLUA_PACKAGE);

// The keys of stylua.toml whose values are words.
const WORDS = {
  block_newline_gaps: stylua.BlockNewlineGaps,
  call_parentheses: stylua.CallParenType,
  collapse_simple_statement: stylua.CollapseSimpleStatement,
  indent_type: stylua.IndentType,
  line_endings: stylua.LineEndings,
  quote_style: stylua.QuoteStyle,
  space_after_function_names: stylua.SpaceAfterFunctionNames,
  syntax: stylua.LuaVersion,
};

/** The settings of a stylua.toml without tables. Throws for what StyLua does not know. */
function readSettings(path) {
  const settings = {};
  for (const line of readFileSync(path, "utf8").split("\n")) {
    const [, key, word, number] = line.match(/^(\w+)\s*=\s*(?:"(\w+)"|(\d+))\s*$/) ?? [];
    if (key === undefined) {
      if (!/^\s*(#|$)/.test(line)) throw new Error(`${path}: cannot read: ${line}`);
      continue;
    }
    const value = word === undefined ? Number(number) : WORDS[key]?.[word];
    if (value === undefined) throw new Error(`${path}: unknown: ${line}`);
    settings[key] = value;
  }
  return settings;
}

/** StyLua takes a configuration away with each call. */
function format(text, settings) {
  const config = Object.assign(stylua.Config.new(), settings);
  return stylua.formatCode(text, config, undefined, stylua.OutputVerification.None);
}

function luauFiles(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".luau"))
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .sort();
}

/** Where two texts first differ, as a person would want to see it. */
function firstDifference(path, before, after) {
  const [old, fresh] = [before.split("\n"), after.split("\n")];
  const at = old.findIndex((line, index) => line !== fresh[index]);
  const index = at < 0 ? old.length : at;
  const shown = (mark, line) => `  ${mark} ${line ?? "(end of file)"}`;
  return [`${path}:${index + 1}: not formatted`, shown("-", old[index]), shown("+", fresh[index])].join("\n");
}

const check = process.argv[2] === "--check";
const folders = process.argv.slice(check ? 3 : 2);
const settings = readSettings("stylua.toml");
let wrong = 0;
let files = 0;
for (const path of folders.flatMap(luauFiles)) {
  const before = readFileSync(path, "utf8");
  files += 1;
  try {
    const after = format(before, settings);
    if (after === before) continue;
    if (check) {
      wrong += 1;
      console.log(firstDifference(path, before, after));
    } else {
      writeFileSync(path, after);
      console.log(`${path}: formatted`);
    }
  } catch (error) {
    wrong += 1;
    console.log(`${path}: ${error.message ?? error}`);
  }
}
console.log(`${files} files, ${wrong} wrong`);
process.exitCode = wrong > 0 ? 1 : 0;
