//! Chosen cases: every kind of file, references, nested projects, and what editors and git do.

use crate::pair::Pair;

/// One thing done to the files.
pub enum Do {
    Write(&'static str, &'static str),
    Remove(&'static str),
    Rename(&'static str, &'static str),
}
use Do::{Remove, Rename, Write};

pub const PROJECT: (&str, &str) = (
    "default.project.json",
    r#"{"name":"Demo","tree":{"$className":"DataModel","ServerStorage":{"Kit":{"$path":"src"}}}}"#,
);

/// Serve `files` with both, do each step, and compare after each.
pub fn run(files: &[(&str, &str)], steps: &[(&str, &[Do])]) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let mut pair = Pair::start(files).await;
        agree(&mut pair, "at the start").await;
        for (name, edits) in steps {
            for edit in *edits {
                match edit {
                    Write(path, text) => pair.write(path, text),
                    Remove(path) => pair.remove(path),
                    Rename(from, to) => pair.rename(from, to),
                }
            }
            agree(&mut pair, name).await;
        }
        eprintln!("{:?}", pair.tally);
    });
}

pub async fn agree(pair: &mut Pair, step: &str) {
    if let Err(difference) = pair.agree().await {
        panic!("{step}: {difference}");
    }
}

const REFS: &str = r#"<roblox version="4"><Item class="Folder" referent="R0"><Properties><string name="Name">refs</string></Properties>
    <Item class="Part" referent="R1"><Properties><string name="Name">Target</string></Properties></Item>
    <Item class="ObjectValue" referent="R2"><Properties><string name="Name">ov</string><Ref name="Value">R1</Ref></Properties></Item>
    </Item></roblox>"#;

const REFS_RENAMED: &str = r#"<roblox version="4"><Item class="Folder" referent="R0"><Properties><string name="Name">refs</string></Properties>
    <Item class="ObjectValue" referent="R2"><Properties><string name="Name">ov</string><Ref name="Value">R1</Ref></Properties></Item>
    <Item class="Part" referent="R1"><Properties><string name="Name">Other</string></Properties></Item>
    </Item></roblox>"#;

#[test]
fn every_kind_of_file() {
    run(
        &[
            PROJECT,
            ("src/module.luau", "return 1"),
            ("src/old.lua", "return 1"),
            ("src/server.server.luau", "print(1)"),
            ("src/client.client.lua", "print(1)"),
            ("src/plugin.plugin.luau", "print(1)"),
            ("src/dir/init.server.luau", "print('init')"),
            ("src/dir/kid.luau", "return 'kid'"),
            ("src/cdir/init.client.lua", "print('init')"),
            ("src/data.json", r#"{"a":[1,2,{"b":null}],"c d":"e"}"#),
            ("src/conf.toml", "a = 1\n[b]\nc = \"d\""),
            ("src/list.yml", "- 1\n- two: [3]\n"),
            ("src/loc.csv", "Key,Source,Context,Example,en\nk,s,c,e,hi\n"),
            ("src/locdir/init.csv", "Key,Source,Context,Example,de\nk,s,c,e,hallo\n"),
            ("src/text.txt", "plain\ntext"),
            ("src/refs.rbxmx", REFS),
            ("src/part.model.json", r#"{"ClassName":"Part","Properties":{"Anchored":true,"Size":[1,2,3]}}"#),
            ("src/readme.md", "nothing"),
            ("src/windows.luau", "return 1\r\nreturn 2\r\n"),
            ("src/mark.luau", "\u{feff}return 1"),
        ],
        &[
            (
                "each gets other contents",
                &[
                    Write("src/module.luau", "return 2"),
                    Write("src/plugin.plugin.luau", "print(2)"),
                    Write("src/dir/init.server.luau", "print('init 2')"),
                    Write("src/data.json", "[]"),
                    Write("src/conf.toml", ""),
                    Write("src/list.yml", "a: b"),
                    Write("src/loc.csv", "Key,Source,Context,Example,en\n"),
                    Write("src/text.txt", ""),
                    Write("src/refs.rbxmx", REFS_RENAMED),
                    Write("src/part.model.json", r#"{"className":"Part","properties":{"Anchored":false}}"#),
                    Write("src/windows.luau", "return 1\nreturn 2\n"),
                ],
            ),
            (
                "metas of every sort",
                &[
                    Write("src/module.meta.json", r#"{"ignoreUnknownInstances":true,"attributes":{"A":1.5}}"#),
                    Write("src/server.meta.json", r#"{"properties":{"Disabled":true}}"#),
                    Write("src/dir/init.meta.json", r#"{"properties":{"Disabled":true},"attributes":{"B":"x"}}"#),
                    Write("src/data.meta.json", r#"{"attributes":{"C":true}}"#),
                    Write("src/text.meta.json", r#"{"attributes":{"D":[1,2,3]}}"#),
                    Write("src/locdir/init.meta.json", r#"{"ignoreUnknownInstances":true}"#),
                    Write("src/model/init.meta.json", r#"{"className":"Model"}"#),
                ],
            ),
            ("a meta goes", &[Remove("src/module.meta.json"), Remove("src/model/init.meta.json")]),
            ("a script becomes a folder's", &[Remove("src/module.luau"), Write("src/module/init.luau", "return 'in'")]),
            ("another kind of script", &[Rename("src/server.server.luau", "src/server.client.luau")]),
            ("files go", &[Remove("src/data.json"), Remove("src/refs.rbxmx"), Remove("src/text.txt")]),
        ],
    );
}

#[test]
fn ids_and_references() {
    let pointing = r#"{"className":"ObjectValue","attributes":{"Rojo_Id":"me","Rojo_Target_Value":"thePart"}}"#;
    let model = r#"{"className":"Model","id":"thing","children":[{"name":"P","className":"Part","id":"thePart"}],"attributes":{"Rojo_Target_PrimaryPart":"thePart"}}"#;
    run(
        &[PROJECT, ("src/ov.model.json", pointing), ("src/thing.model.json", model)],
        &[
            (
                "another target",
                &[Write(
                    "src/thing.model.json",
                    r#"{"className":"Model","children":[{"name":"P","className":"Part","id":"thePart"},{"name":"Q","className":"Part","attributes":{"Rojo_Id":"q"}}],"attributes":{"Rojo_Target_PrimaryPart":"q"}}"#,
                )],
            ),
            ("a second that points there", &[Write("src/ov2.model.json", pointing)]),
            ("the target is replaced", &[Write("src/thing.model.json", r#"{"className":"Part","id":"thePart"}"#)]),
            ("the target goes", &[Remove("src/thing.model.json")]),
            (
                "and comes back elsewhere",
                &[Write("src/deep/er.model.json", r#"{"className":"Folder","id":"thePart"}"#)],
            ),
            (
                "a meta names its script",
                &[
                    Write("src/s.luau", "return 1"),
                    Write("src/s.meta.json", r#"{"id":"script","attributes":{"Rojo_Target_Value":"script"}}"#),
                ],
            ),
        ],
    );
}

#[test]
fn nested_projects() {
    run(
        &[
            PROJECT,
            (
                "src/Pak/default.project.json",
                r#"{"name":"Inner","globIgnorePaths":["**/*.md.luau"],"tree":{"$path":"lib"}}"#,
            ),
            ("src/Pak/lib/a.luau", "return 'a'"),
            ("src/Pak/lib/b.md.luau", "ignored"),
            ("src/file.project.json", r#"{"name":"File","tree":{"$className":"Folder","In":{"$path":"Alone"}}}"#),
            ("src/Alone/x.luau", "return 'x'"),
        ],
        &[
            ("a file in it", &[Write("src/Pak/lib/c.luau", "return 'c'")]),
            ("one that it ignores", &[Write("src/Pak/lib/d.md.luau", "ignored")]),
            (
                "another tree",
                &[Write(
                    "src/Pak/default.project.json",
                    r#"{"name":"Inner","tree":{"$className":"Folder","L":{"$path":"lib","$properties":{}},"M":{"$className":"Model"}}}"#,
                )],
            ),
            ("an edit below", &[Write("src/Pak/lib/a.luau", "return 'a2'"), Write("src/Alone/x.luau", "return 'x2'")]),
            ("it goes", &[Remove("src/Pak/default.project.json")]),
            ("it comes", &[Write("src/Pak/default.project.json", r#"{"tree":{"$path":"lib"}}"#)]),
            ("the whole folder goes", &[Remove("src/Pak")]),
            ("the other kind goes", &[Remove("src/file.project.json")]),
        ],
    );
}

#[test]
fn what_editors_and_git_do() {
    run(
        &[
            PROJECT,
            ("src/Alpha.luau", "return 1"),
            ("src/Beta/init.luau", "return {}"),
            ("src/Beta/Gamma.luau", "return 3"),
            ("src/Deep/One/Two/Leaf.server.luau", "print(1)"),
        ],
        &[
            ("a save by rename", &[Write("src/.tmp1", "return 2"), Rename("src/.tmp1", "src/Alpha.luau")]),
            ("a save by unlink", &[Remove("src/Alpha.luau"), Write("src/Alpha.luau", "return 3")]),
            ("a rename", &[Rename("src/Alpha.luau", "src/Omega.luau")]),
            ("other letters only", &[Rename("src/Omega.luau", "src/omega.luau"), Rename("src/Beta", "src/beta")]),
            ("a folder moves into another", &[Rename("src/beta", "src/Deep/beta")]),
            ("a folder becomes a module", &[Remove("src/Deep/beta"), Write("src/Deep/beta.luau", "return 'm'")]),
            (
                "a module becomes a folder",
                &[
                    Remove("src/Deep/beta.luau"),
                    Write("src/Deep/beta/init.luau", "return 'f'"),
                    Write("src/Deep/beta/kid.luau", "return 'k'"),
                ],
            ),
            ("an init goes", &[Remove("src/Deep/beta/init.luau")]),
            ("c01: a nested folder goes", &[Remove("src/Deep")]),
            ("everything goes", &[Remove("src/omega.luau")]),
            (
                "a folder moves out and back",
                &[Write("src/Pack/a.luau", "return 'a'"), Rename("src/Pack", "out"), Rename("out", "src/Pack")],
            ),
            (
                "c08: a broken file and a sibling",
                &[Write("src/Pack/init.meta.json", "{"), Write("src/Pack/sibling.luau", "return 's'")],
            ),
            ("it is mended", &[Write("src/Pack/init.meta.json", "{}")]),
        ],
    );
}
