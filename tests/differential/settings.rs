//! What the project file itself can say.

use crate::{
    cases::{Do, agree, run},
    pair::Pair,
};
use Do::{Remove, Write};

const FILES: [(&str, &str); 6] = [
    ("src/a.luau", "return 'a'"),
    ("src/b.server.luau", "print('b')"),
    ("src/c.client.luau", "print('c')"),
    ("src/d.spec.luau", "return 'd'"),
    ("src/e.note", "a note"),
    ("src/f/init.server.luau", "print('f')"),
];

fn with(project: &'static str) -> Vec<(&'static str, &'static str)> {
    [("default.project.json", project)].into_iter().chain(FILES).collect()
}

#[test]
fn script_classes() {
    for legacy in [
        r#"{"name":"L","emitLegacyScripts":true,"tree":{"$path":"src"}}"#,
        r#"{"name":"L","emitLegacyScripts":false,"tree":{"$path":"src"}}"#,
    ] {
        run(
            &with(legacy),
            &[
                ("a new script", &[Write("src/new.client.luau", "print('new')")]),
                (
                    "the other way",
                    &[Write(
                        "default.project.json",
                        r#"{"name":"L","emitLegacyScripts":true,"tree":{"$className":"Folder","S":{"$path":"src"}}}"#,
                    )],
                ),
                (
                    "and back",
                    &[Write(
                        "default.project.json",
                        r#"{"name":"L","emitLegacyScripts":false,"tree":{"$className":"Folder","S":{"$path":"src"}}}"#,
                    )],
                ),
            ],
        );
    }
}

#[test]
fn c21_globs_and_c33_rules() {
    run(
        &with(
            r#"{"name":"R","globIgnorePaths":["**/*.spec.luau","**/.cache"],
                "syncRules":[{"pattern":"*.note","use":"text"},{"pattern":"*.luau","exclude":"b*","use":"moduleScript","suffix":".luau"}],
                "tree":{"$className":"DataModel","ServerStorage":{"$path":"src"}}}"#,
        ),
        &[
            (
                "ignored and ruled files come",
                &[
                    Write("src/g.spec.luau", "ignored"),
                    Write("src/.cache/x.luau", "ignored"),
                    Write("src/h.note", "another note"),
                    Write("src/b2.server.luau", "print('b2')"),
                ],
            ),
            (
                "other globs",
                &[Write(
                    "default.project.json",
                    r#"{"name":"R","globIgnorePaths":["**/*.note","!**/h.note"],
                    "syncRules":[{"pattern":"*.note","use":"text"}],
                    "tree":{"$className":"DataModel","ServerStorage":{"$path":"src"}}}"#,
                )],
            ),
            (
                "none",
                &[Write(
                    "default.project.json",
                    r#"{"name":"R","tree":{"$className":"DataModel","ServerStorage":{"$path":"src"}}}"#,
                )],
            ),
        ],
    );
}

#[test]
fn c33_every_rule_by_its_name_and_what_init_files_make_of_them() {
    let with = |uses: &str| {
        format!(
            r#"{{"name":"R","emitLegacyScripts":false,"syncRules":[{{"pattern":"*.legacy.server.luau","use":"{uses}","suffix":".legacy.server.luau"}},{{"pattern":"**/q.*","use":"ignore"}}],"tree":{{"$className":"DataModel","ServerStorage":{{"$path":"src"}}}}}}"#
        )
    };
    let uses = [
        "legacyServerScript",
        "legacyClientScript",
        "runContextServerScript",
        "runContextClientScript",
        "serverScript",
        "clientScript",
        "pluginScript",
        "moduleScript",
        "text",
        "ignore",
    ];
    let projects = uses.map(with);
    let edits: Vec<[Do; 1]> =
        projects.iter().map(|text| [Write("default.project.json", Box::leak(text.clone().into_boxed_str()))]).collect();
    let steps: Vec<(&str, &[Do])> = uses.into_iter().zip(edits.iter().map(|edit| &edit[..])).collect();
    let files = [
        ("default.project.json", projects[0].as_str()),
        ("src/a.legacy.server.luau", "print('a')"),
        ("src/in/init.legacy.server.luau", "print('in')"),
        ("src/in/kid.luau", "return 'kid'"),
        ("src/q.luau", "ignored"),
        ("src/q.server.luau", "ignored"),
    ];
    run(&files, &steps);
}

#[test]
fn nodes_and_optional_paths() {
    run(
        &with(
            r#"{"name":"N","tree":{"$className":"DataModel",
                "ReplicatedStorage":{"$path":"src","Extra":{"$className":"Folder","$attributes":{"A":1.5}}},
                "Workspace":{"$properties":{"Gravity":50.0},"$ignoreUnknownInstances":true},
                "Opt":{"$className":"Folder","Maybe":{"$path":{"optional":"opt"}}},
                "ServerScriptService":{"Main":{"$path":"main.server.luau"}}}}"#,
        )
        .into_iter()
        .chain([("main.server.luau", "print('main')")])
        .collect::<Vec<_>>(),
        &[
            ("the optional path comes", &[Write("opt/o.luau", "return 'o'")]),
            ("a single file changes", &[Write("main.server.luau", "print('main 2')")]),
            ("a single file gets a meta", &[Write("main.meta.json", r#"{"properties":{"Disabled":true}}"#)]),
            ("the optional path goes", &[Remove("opt")]),
            (
                "other nodes",
                &[Write(
                    "default.project.json",
                    r#"{"name":"N2","tree":{"$className":"DataModel",
                    "ReplicatedStorage":{"$path":"src","Extra":{"$className":"Model"},"a":{"$properties":{}}},
                    "Lighting":{"$properties":{"Brightness":3.0}},
                    "Workspace":{"$properties":{"Gravity":60.0}}}}"#,
                )],
            ),
            ("a broken project", &[Write("default.project.json", "{ nope")]),
            ("the project goes", &[Remove("default.project.json")]),
            ("it is mended", &[Write("default.project.json", r#"{"name":"N3","tree":{"$path":"src"}}"#)]),
        ],
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c37_what_the_plugin_is_told_of_the_project() {
    let project = ("default.project.json", r#"{"name":"Info","tree":{"$path":"src"}}"#);
    let mut pair = Pair::start(&[project, ("src/a.luau", "return 1")]).await;
    for text in [
        r#"{"name":"Info","tree":{"$path":"src"}}"#,
        r#"{"tree":{"$path":"src"}}"#,
        r#"{"name":"Info 2","servePlaceIds":[3,1,2],"gameId":77,"placeId":88,"tree":{"$path":"src"}}"#,
        r#"{"name":"Info 3","servePlaceIds":[],"blockedPlaceIds":[5],"tree":{"$path":"src"}}"#,
    ] {
        pair.write("default.project.json", text);
        pair.catch_up().await;
        let [ours, theirs] = pair.infos().await;
        assert_eq!(ours, theirs, "{text}");
        agree(&mut pair, text).await;
    }
}
