//! Properties, attributes, tags and models: from files to Studio, and taken back.

use serde_json::{Value, json};

use crate::support::{Agent, TestServer, delete, demo, save, until};

const LAMP: &str = "assets/Lamp.model.json";
const IN_STUDIO: &str = "game.ReplicatedStorage.Assets.Lamp";

/// A part with these properties, in a file.
fn lamp(properties: &Value, rest: &Value) -> String {
    let mut model = json!({ "className": "Part", "properties": properties });
    for (key, value) in rest.as_object().expect("an object") {
        model[key] = value.clone();
    }
    model.to_string()
}

/// Every type that a plugin writes: class, property, before, after, and what Studio then says of it.
// long: it is a table.
fn types() -> Vec<(&'static str, &'static str, Value, Value, &'static str)> {
    let keys =
        |value: f64| json!([{ "time": 0, "value": value, "envelope": 0 }, { "time": 1, "value": 0, "envelope": 0 }]);
    let colors = |red: f64| json!([{ "time": 0, "color": [red, 0, 0] }, { "time": 1, "color": [0, 0, 1] }]);
    let frame =
        |y: f64| json!({ "CFrame": { "position": [0, y, 0], "orientation": [[0, 0, 1], [0, 1, 0], [-1, 0, 0]] } });
    let physics = |friction: f64| {
        json!({ "PhysicalProperties": { "density": 1, "friction": friction, "elasticity": 0.5, "frictionWeight": 1,
            "elasticityWeight": 1, "acousticAbsorption": 1 } })
    };
    let font = |weight: &str| json!({ "Font": { "family": "rbxasset://fonts/families/Arial.json", "weight": weight, "style": "Normal" } });
    let ray = |y: f64| json!({ "Ray": { "origin": [0, y, 0], "direction": [0, 0, 1] } });
    vec![
        ("BoolValue", "Value", json!(false), json!(true), "true"),
        ("StringValue", "Value", json!("old"), json!("né\n\u{1F600}"), "né\n\u{1F600}"),
        ("IntValue", "Value", json!(1), json!(-7), "-7"),
        ("NumberValue", "Value", json!(1), json!(0.1), "0.1"),
        ("Part", "Transparency", json!(0), json!(0.25), "0.25"),
        ("AlignPosition", "MaxForce", json!({ "Float32": 5 }), json!({ "Float32": 10 }), "10"),
        ("Part", "Material", json!("Plastic"), json!("Neon"), "Enum.Material.Neon"),
        ("Part", "Size", json!([1, 1, 1]), json!([1, 2, 3]), "1, 2, 3"),
        ("Part", "CFrame", frame(1.0), frame(5.0), "0, 5, 0, 0, 0, 1, 0, 1, 0, -1, 0, 0"),
        ("Part", "Color", json!([0, 0, 0]), json!([1, 0, 0]), "1, 0, 0"),
        ("Color3Value", "Value", json!([0, 0, 0]), json!([0.5, 0, 1]), "0.5, 0, 1"),
        ("BrickColorValue", "Value", json!({ "BrickColor": 1 }), json!({ "BrickColor": 21 }), "Bright red"),
        ("Part", "CustomPhysicalProperties", physics(0.25), physics(0.5), "1, 0.5, 0.5, 1, 1"),
        ("RayValue", "Value", ray(0.0), ray(2.0), "{0, 2, 0}, {0, 0, 1}"),
        ("UICorner", "CornerRadius", json!({ "UDim": [0, 1] }), json!({ "UDim": [0.5, 8] }), "0.5, 8"),
        (
            "Frame",
            "Position",
            json!({ "UDim2": [[0, 0], [0, 0]] }),
            json!({ "UDim2": [[0.5, 1], [1, -4]] }),
            "{0.5, 1}, {1, -4}",
        ),
        (
            "ImageLabel",
            "SliceCenter",
            json!({ "Rect": [[0, 0], [0, 0]] }),
            json!({ "Rect": [[1, 2], [3, 4]] }),
            "1, 2, 3, 4",
        ),
        ("Frame", "AnchorPoint", json!([0, 0]), json!([0.5, 1]), "0.5, 1"),
        ("TextLabel", "FontFace", font("Regular"), font("Bold"), "Bold"),
        ("ParticleEmitter", "Lifetime", json!({ "NumberRange": [1, 2] }), json!({ "NumberRange": [3, 4] }), "3 4"),
        (
            "ParticleEmitter",
            "Size",
            json!({ "NumberSequence": { "keypoints": keys(1.0) } }),
            json!({ "NumberSequence": { "keypoints": keys(0.5) } }),
            "0.5",
        ),
        (
            "ParticleEmitter",
            "Color",
            json!({ "ColorSequence": { "keypoints": colors(1.0) } }),
            json!({ "ColorSequence": { "keypoints": colors(0.5) } }),
            "0.5",
        ),
        ("ParticleEmitter", "Texture", json!("rbxassetid://1"), json!("rbxassetid://2"), "rbxassetid://2"),
        ("Handles", "Faces", json!({ "Faces": ["Top"] }), json!({ "Faces": ["Front", "Right"] }), "FrontRight"),
        ("ArcHandles", "Axes", json!({ "Axes": ["X"] }), json!({ "Axes": ["Y", "Z"] }), "YZ"),
    ]
}

/// Says a value in a way that both a Studio and this test write alike.
const SAY: &str = r"
    local function say(value)
        local kind = typeof(value)
        if kind == 'NumberRange' then return `{value.Min} {value.Max}` end
        if kind == 'NumberSequence' then return tostring(value.Keypoints[1].Value) end
        if kind == 'ColorSequence' then return tostring(value.Keypoints[1].Value.R) end
        if kind == 'Rect' then return `{value.Min.X}, {value.Min.Y}, {value.Max.X}, {value.Max.Y}` end
        if kind == 'Font' then return value.Weight.Name end
        if kind == 'Faces' then return (value.Front and 'Front' or '') .. (value.Right and 'Right' or '') .. (value.Top and 'Top' or '') end
        if kind == 'Axes' then return (value.X and 'X' or '') .. (value.Y and 'Y' or '') .. (value.Z and 'Z' or '') end
        if kind == 'Ray' then return `\{{value.Origin}}, \{{value.Direction}}` end
        if kind == 'UDim2' then return `\{{value.X.Scale}, {value.X.Offset}}, \{{value.Y.Scale}, {value.Y.Offset}}` end
        if kind == 'PhysicalProperties' then
            return `{value.Density}, {value.Friction}, {value.Elasticity}, {value.FrictionWeight}, {value.ElasticityWeight}`
        end
        return tostring(value)
    end
";

fn zoo(after: bool) -> String {
    let children: Vec<Value> = types()
        .into_iter()
        .enumerate()
        .map(|(at, (class, property, old, new, _))| {
            json!({ "name": format!("Z{at}"), "className": class, "properties": { property: if after { new } else { old } } })
        })
        .collect();
    json!({ "className": "Folder", "children": children }).to_string()
}

async fn say(agent: &Agent, of: &str) -> Value {
    agent.eval(&format!("{SAY} return say({of})")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_type_of_value_reaches_studio_and_a_second_sync_does_nothing() {
    let project = demo();
    save(project.path(), "assets/Zoo.model.json", &zoo(false));
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    let first = agent.ask("sync", json!({})).await;
    assert_eq!(first["status"], "empty", "{first}");
    save(project.path(), "assets/Zoo.model.json", &zoo(true));
    let receipt = agent.ask("sync", json!({})).await;
    assert_eq!((&receipt["status"], &receipt["failed"]), (&json!("success"), &json!(0)), "{receipt}");
    assert_eq!(receipt["pushed"], types().len(), "{receipt}");
    for (at, (class, property, _, _, said)) in types().into_iter().enumerate() {
        let of = format!("game.ReplicatedStorage.Assets.Zoo.Z{at}.{property}");
        assert_eq!(say(&agent, &of).await, json!(said), "{class}.{property}");
    }
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");

    let undone = agent.ask("undo", json!({ "change": receipt["journal"] })).await;
    assert_eq!(undone["status"], "success", "{undone}");
    assert_eq!(say(&agent, "game.ReplicatedStorage.Assets.Zoo.Z6.Material").await, "Enum.Material.Plastic");
    let again = agent.ask("sync", json!({})).await;
    assert_eq!(again["pushed"], types().len(), "as the first one found it: {again}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_a_file_specifies_is_touched() {
    let project = demo();
    save(project.path(), LAMP, &lamp(&json!({ "Anchored": false }), &json!({ "attributes": { "damage": 1 } })));
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");
    let by_hand = format!("local l = {IN_STUDIO} l.Transparency = 0.5 l:SetAttribute('mine', 7) l:AddTag('mine')");
    studio.run(&by_hand).await.expect("set");
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty", "no file says anything of these");
    save(
        project.path(),
        LAMP,
        &lamp(&json!({ "Anchored": true }), &json!({ "attributes": { "damage": 2, "on": true } })),
    );
    let receipt = agent.ask("sync", json!({})).await;
    assert_eq!((&receipt["status"], &receipt["pushed"]), (&json!("success"), &json!(1)), "{receipt}");
    let change = &receipt["changes"][0];
    assert_eq!((&change["fsPath"], &change["className"]), (&json!(LAMP), &json!("Part")));
    assert_eq!(change["properties"]["Anchored"], json!({ "current": { "Bool": false }, "incoming": { "Bool": true } }));
    assert_eq!(change["properties"]["@on"]["current"], json!({ "Nil": true }));
    let now = format!(
        "local l = {IN_STUDIO} return {{ l.Anchored, l.Transparency, l:GetAttribute('damage'), l:GetAttribute('on'), \
         l:GetAttribute('mine'), l:HasTag('mine') }}"
    );
    assert_eq!(agent.eval(&now).await, json!([true, 0.5, 2, true, 7, true]));

    let undone = agent.ask("undo", json!({ "change": receipt["journal"] })).await;
    assert_eq!(undone["status"], "success", "{undone}");
    let back =
        format!("local l = {IN_STUDIO} return {{ l.Anchored, l:GetAttribute('damage'), l:GetAttribute('on') == nil }}");
    assert_eq!(agent.eval(&back).await, json!([false, 1, true]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_was_changed_in_studio_is_left_alone_and_an_override_pushes_it() {
    let project = demo();
    save(project.path(), LAMP, &lamp(&json!({ "Transparency": 0, "Anchored": false }), &json!({})));
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");
    studio.run(&format!("{IN_STUDIO}.Transparency = 0.5")).await.expect("set");
    save(project.path(), LAMP, &lamp(&json!({ "Transparency": 0.25, "Anchored": true }), &json!({})));
    let receipt = agent.ask("sync", json!({})).await;
    assert_eq!((&receipt["pushed"], &receipt["unresolved"]), (&json!(1), &json!(1)), "{receipt}");
    let now = format!("local l = {IN_STUDIO} return {{ l.Transparency, l.Anchored }}");
    assert_eq!(agent.eval(&now).await, json!([0.5, true]));
    let held = receipt["changes"].as_array().expect("a list").iter().find(|line| line["result"] == "unresolved");
    let held = held.expect("one is left");
    assert!(held["reason"].as_str().expect("why").contains("changed in Studio"), "{held}");
    let wanted = |transparency: f64| {
        json!({ "overrides": [{ "id": held["id"], "direction": "push",
            "expectedProperties": { "Transparency": { "Float32": transparency } } }] })
    };
    let refused = agent.ask("sync", wanted(0.75)).await;
    assert_eq!((&refused["status"], &refused["pushed"]), (&json!("rejected"), &json!(0)), "{refused}");
    let pushed = agent.ask("sync", wanted(0.5)).await;
    assert_eq!((&pushed["status"], &pushed["pushed"]), (&json!("success"), &json!(1)), "{pushed}");
    assert_eq!(agent.eval(&now).await, json!([0.25, true]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_model_is_made_whole_and_goes_with_its_file() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");
    let rig = json!({
        "className": "Model",
        "attributes": { "Rojo_Target_PrimaryPart": "root", "level": 3 },
        "children": [
            { "name": "Root", "className": "Part", "attributes": { "Rojo_Id": "root" }, "properties": { "Anchored": true, "Tags": ["hot"] },
              "children": [{ "name": "Glow", "className": "PointLight", "properties": { "Range": 14 } }] },
            { "name": "Force", "className": "AlignPosition", "properties": { "Enabled": false } },
            { "name": "Parts", "className": "Folder" }
        ]
    });
    save(project.path(), "assets/Rig.model.json", &rig.to_string());
    let receipt = agent.ask("sync", json!({})).await;
    assert_eq!((&receipt["status"], &receipt["pushed"]), (&json!("success"), &json!(1)), "{receipt}");
    let now = "local r = game.ReplicatedStorage.Assets.Rig return { r.PrimaryPart == r.Root, r.Root.Anchored, \
               r.Root.Glow.Range, r.Root:HasTag('hot'), r:GetAttribute('level'), r:GetAttribute('Rojo_Target_PrimaryPart') == nil, \
               r.Force.Enabled }";
    assert_eq!(agent.eval(now).await, json!([true, true, 14, true, 3, true, false]));
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");

    delete(project.path(), "assets/Rig.model.json");
    let removed = agent.ask("sync", json!({ "allowRemovals": true })).await;
    assert_eq!((&removed["status"], &removed["removed"]), (&json!("success"), &json!(1)), "{removed}");
    assert_eq!(agent.eval("return game.ReplicatedStorage.Assets:FindFirstChild('Rig') == nil").await, json!(true));

    let undone = agent.ask("undo", json!({ "change": removed["journal"] })).await;
    assert_eq!(undone["status"], "success", "{undone}");
    let back = "local r = game.ReplicatedStorage.Assets.Rig return { r.Root.Anchored, r.Root.Glow.Range, r:GetAttribute('level') }";
    assert_eq!(agent.eval(back).await, json!([true, 14, 3]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_holds_things_made_in_studio_is_not_removed() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");
    studio
        .run("local p = Instance.new('Part') p.Name = 'Mine' p.Parent = game.ReplicatedStorage.Assets.Lantern.Glass")
        .await
        .expect("made");
    delete(project.path(), "assets/Lantern.model.json");
    let receipt = agent.ask("sync", json!({ "allowRemovals": true })).await;
    assert_eq!((&receipt["removed"], &receipt["unresolved"]), (&json!(0), &json!(1)), "{receipt}");
    assert_eq!(agent.eval("return game.ReplicatedStorage.Assets.Lantern.Glass.Mine.ClassName").await, json!("Part"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_binary_model_is_followed_and_a_changed_class_is_another_instance() {
    let project = demo();
    let model = |transparency: f32, class: &str| {
        let part = rbx_dom_weak::InstanceBuilder::new(class)
            .with_name("Crate")
            .with_property("Transparency", transparency)
            .with_property("Size", rbx_dom_weak::types::Vector3::new(1.0, 2.0, 3.0));
        let dom = rbx_dom_weak::WeakDom::new(rbx_dom_weak::InstanceBuilder::new("Folder").with_child(part));
        let mut bytes = Vec::new();
        rbx_binary::to_writer(&mut bytes, &dom, dom.root().children()).expect("written");
        bytes
    };
    let write = |bytes: &[u8]| {
        #[expect(clippy::disallowed_methods, reason = "an editor is not the server")]
        std::fs::write(project.path().join("assets/Crate.rbxm"), bytes).expect("saved");
    };
    write(&model(0.25, "Part"));
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");
    write(&model(0.5, "Part"));
    let receipt = agent.ask("sync", json!({ "paths": ["assets/Crate.rbxm"] })).await;
    assert_eq!((&receipt["status"], &receipt["pushed"]), (&json!("success"), &json!(1)), "{receipt}");
    let now = "local c = game.ReplicatedStorage.Assets.Crate return { c.ClassName, c.Transparency, c.Size.Y }";
    assert_eq!(agent.eval(now).await, json!(["Part", 0.5, 2]));
    write(&model(0.5, "WedgePart"));
    let receipt = agent.ask("sync", json!({ "allowRemovals": true })).await;
    assert_eq!(receipt["status"], "success", "{receipt}");
    assert_eq!(agent.eval(now).await, json!(["WedgePart", 0.5, 2]));
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_s_meta_file_and_the_project_s_own_properties_are_synced() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");
    let meta = json!({ "attributes": { "Layer": "Top" }, "properties": { "Disabled": true } });
    save(project.path(), "src/client/Hud.meta.json", &meta.to_string());
    save(project.path(), "src/client/Hud.client.luau", "print('hud')\n");
    let receipt = agent.ask("sync", json!({})).await;
    assert_eq!((&receipt["status"], &receipt["pushed"]), (&json!("success"), &json!(2)), "{receipt}");
    let now = "local h = game.StarterPlayer.StarterPlayerScripts.Client.Hud return { h.Disabled, h:GetAttribute('Layer'), h.Source }";
    assert_eq!(agent.eval(now).await, json!([true, "Top", "print('hud')\n"]));
    let file = project.path().join("default.project.json");
    let text = std::fs::read_to_string(&file).expect("the project").replace("150", "90");
    save(project.path(), "default.project.json", &text);
    let receipt = agent.ask("sync", json!({})).await;
    assert_eq!((&receipt["status"], &receipt["pushed"]), (&json!("success"), &json!(1)), "{receipt}");
    assert_eq!(agent.eval("return workspace.Gravity").await, json!(90));
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");
}

#[tokio::test(flavor = "multi_thread")]
async fn live_mode_carries_properties_and_models_as_they_are_saved() {
    let project = demo();
    save(project.path(), LAMP, &lamp(&json!({ "Transparency": 0 }), &json!({})));
    let server = TestServer::start(project.path()).await;
    let studio = server.live_studio(false).await;
    let agent = server.agent();
    save(project.path(), LAMP, &lamp(&json!({ "Transparency": 0.5 }), &json!({})));
    let seen = |of: String, wanted: Value| {
        let studio = &studio;
        async move { studio.run(&format!("return {of}")).await.is_ok_and(|values| values.first() == Some(&wanted)) }
    };
    until("the property is set", || seen(format!("{IN_STUDIO}.Transparency"), json!(0.5))).await;
    save(project.path(), "assets/New.model.json", &lamp(&json!({ "Anchored": true }), &json!({})));
    let there = "game.ReplicatedStorage.Assets:FindFirstChild('New') ~= nil";
    until("the model is made", || seen(there.to_owned(), json!(true))).await;
    assert_eq!(agent.eval("return game.ReplicatedStorage.Assets.New.Anchored").await, json!(true));

    studio.run(&format!("{IN_STUDIO}.Transparency = 0.75")).await.expect("set");
    save(project.path(), LAMP, &lamp(&json!({ "Transparency": 0.25 }), &json!({})));
    until("it is held", || async {
        let status = agent.ask("status", json!({})).await;
        status.to_string().contains("ReplicatedStorage.Assets.Lamp")
    })
    .await;
    assert_eq!(agent.eval(&format!("return {IN_STUDIO}.Transparency")).await, json!(0.75));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reference_that_was_changed_in_studio_is_left_alone() {
    let project = demo();
    let model = |target: &str| {
        let part = |name: &str| json!({ "name": name, "className": "Part", "attributes": { "Rojo_Id": name } });
        let attributes = json!({ "Rojo_Target_PrimaryPart": target });
        json!({ "className": "Model", "attributes": attributes, "children": [part("Root"), part("Other")] }).to_string()
    };
    save(project.path(), "assets/Rig.model.json", &model("Root"));
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");
    let rig = "game.ReplicatedStorage.Assets.Rig";
    studio.run(&format!("{rig}.PrimaryPart = {rig}.Other")).await.expect("changed");
    let receipt = agent.ask("sync", json!({})).await;
    let line = &receipt["changes"][0];
    assert_eq!((&receipt["status"], &receipt["unresolved"]), (&json!("rejected"), &json!(1)), "{receipt}");
    assert!(line["reason"].as_str().expect("why").starts_with("PrimaryPart"), "{receipt}");
    let push = json!({ "overrides": [{ "id": line["id"], "direction": "push" }] });
    assert_eq!(agent.ask("sync", push).await["pushed"], 1);
    assert_eq!(agent.eval(&format!("return {rig}.PrimaryPart.Name")).await, json!("Root"));
    save(project.path(), "assets/Rig.model.json", &model("Other"));
    assert_eq!(agent.ask("sync", json!({})).await["pushed"], 1, "the file has another now");
    assert_eq!(agent.eval(&format!("return {rig}.PrimaryPart.Name")).await, json!("Other"));
}
