//! Something comes to a place, or leaves it, between the comparison and the plan.

use super::*;

const LAMP: &str = "src/shared/Lamp.luau";

#[tokio::test(flavor = "multi_thread")]
async fn what_was_made_in_studio_before_the_plan_keeps_its_place() {
    for mode in MODES {
        let place = Place::open(&[]).await;
        save(place.project.path(), LAMP, "return 'file'\n");
        save(place.project.path(), MONEY, "return 'money'\n");
        let make = "local new = Instance.new('ModuleScript') new.Name = 'Lamp' new.Source = 'return \"mine\"'
            new.Parent = game.ReplicatedStorage.Shared";
        let receipt = place
            .sync_with(json!({ "mode": mode }), PLAN, async || {
                place.run(make).await;
            })
            .await;
        assert_eq!((&receipt["status"], &receipt["pushed"]), (&json!("error"), &json!(0)), "{mode}: {receipt}");
        assert_eq!(line(&receipt, "ReplicatedStorage.Shared.Lamp")["result"], "guard", "{receipt}");
        assert_eq!(line(&receipt, "ReplicatedStorage.Shared.Money")["result"], "skipped", "{receipt}");
        let lamps = "local all = {} for _, child in game.ReplicatedStorage.Shared:GetChildren() do
            if child.Name == 'Lamp' then table.insert(all, child.Source) end end return table.concat(all, '|')";
        assert_eq!(place.run(lamps).await, "return \"mine\"");
        let next = place.sync(json!({})).await;
        assert_eq!((&next["pushed"], &next["unresolved"]), (&json!(1), &json!(1)), "two texts of one name: {next}");
        assert_eq!(place.run(lamps).await, "return \"mine\"");
        assert_eq!(place.read(LAMP), "return 'file'\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_changed_or_moved_before_it_is_renamed_stays_as_it_is() {
    let files = ["src/shared/Parts/One.luau", "src/shared/Parts/Two.luau", "src/shared/Parts/Three.luau"];
    let one = "game.ReplicatedStorage.Shared.Parts.One";
    let change = format!("{one}.Source = 'return \"typed\"'");
    let leave = format!("{one}.Parent = game.ReplicatedStorage.Shared");
    for (meanwhile, there) in [(change, "Parts"), (leave, "Shared")] {
        let place = Place::open(&files).await;
        let text = place.read(files[0]);
        delete(place.project.path(), files[0]);
        save(place.project.path(), "src/shared/Parts/Uno.luau", &text);
        let receipt = place
            .sync_with(json!({}), PLAN, async || {
                place.run(&meanwhile).await;
            })
            .await;
        assert_eq!(receipt["renamed"], 0, "{meanwhile}: {receipt}");
        assert_eq!(line(&receipt, "ReplicatedStorage.Shared.Parts.Uno")["result"], "guard", "{receipt}");
        let found = "return game.ReplicatedStorage.Shared:FindFirstChild('One', true).Parent.Name";
        assert_eq!(place.run(found).await, there, "{meanwhile}");
        assert_eq!(place.read("src/shared/Parts/Uno.luau"), text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_came_before_one_of_its_name_is_made_keeps_its_text() {
    for mode in MODES {
        let place = Place::open(&[]).await;
        let make = "local new = Instance.new('ModuleScript') new.Name = 'Lamp' new.Source = 'return \"Studio\"'
            new.Parent = game.ReplicatedStorage.Shared";
        place.run(make).await;
        let seen = place.sync(json!({ "mode": "dryrun" })).await;
        let wish = json!([{ "id": line(&seen, "ReplicatedStorage.Shared.Lamp")["tempId"], "direction": "pull" }]);
        let receipt = place
            .sync_with(json!({ "mode": mode, "overrides": wish }), TEXT, async || {
                save(place.project.path(), LAMP, "return 'file'\n");
            })
            .await;
        assert_eq!(receipt["pulled"], 0, "{mode}: {receipt}");
        assert_eq!(place.read(LAMP), "return 'file'\n");
        assert_eq!(place.run("return game.ReplicatedStorage.Shared.Lamp.Source").await, "return \"Studio\"");
    }
}
