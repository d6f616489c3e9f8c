//! Frames whose fields are compared one by one with what they are read as.

use super::*;

#[test]
fn a_hello_is_read_field_by_field() {
    let hello = Hello {
        two_way_sync: false,
        one_shot_sync: true,
        confirmation_behavior: "Initial".into(),
        place_id: 11,
        level1: None,
    };
    assert_eq!(one("hello_level0"), PluginFrame::Hello(Box::new(hello.clone())));
    let level1 = HelloLevel1 {
        protocol: 1,
        plugin_version: "0.1.0".into(),
        session_id: "c0ffee00-1111-4222-8333-444455556666".into(),
        instance_id: "place:11".into(),
        role: Role::Edit,
        place_name: "Obby".into(),
        data_model_name: "Place1".into(),
        game_id: 22,
        is_running: false,
        other_editors: 1,
        tools: vec!["run_code".into(), "get_studio_mode".into()],
        reviews: true,
        server_id: Some("a3c1d6f0-3c55-4c0f-8a0f-7a1f7c1b9d01".into()),
        last_n: 41,
        tree_id: Some("5d1a0a5e-21d2-4c1c-b0a5-6c3d9e6c1a77".into()),
        cursor: Some(7),
        in_flight: vec!["6f1d2c1e-8f0a-4f5e-9a53-0c9d6a2b7e11".into()],
        pending: vec!["0b8e7f44-52c4-4ef0-9a39-1f5f2f6f3f10".into()],
    };
    assert_eq!(one("hello_again"), PluginFrame::Hello(Box::new(Hello { level1: Some(level1), ..hello })));
}

#[test]
fn small_frames_are_read_field_by_field() {
    let request_id = RequestId::from("6f1d2c1e-8f0a-4f5e-9a53-0c9d6a2b7e11");
    let plan = Some(request_id.clone());
    assert_eq!(one("taken_tree"), PluginFrame::Taken { request_id: None, part: 0 });
    assert_eq!(one("taken_plan"), PluginFrame::Taken { request_id: plan, part: 1 });
    assert_eq!(
        one("roblox_log_error"),
        PluginFrame::RobloxLog { message: "é 🙂 error".into(), level: 3, logical_id: None }
    );
    let proofs = vec!["521bed17c563a8d620e29843459743d8c25095f8".to_owned()];
    assert_eq!(one("proof"), PluginFrame::Proof { proofs });
    assert_eq!(one("proof_none"), PluginFrame::Proof { proofs: Vec::new() });
    let hash = "602c63d2f3d13ca3206cdf204cde24e7d8f4266c".to_owned();
    assert_eq!(one("pair"), PluginFrame::Pair { code: "123456".into(), hash });
    assert_eq!(one("bye"), PluginFrame::Bye { reason: "Unloading".into() });
    let (nodes, removed) = (vec![NodeId(2), NodeId(3)], vec![NodeId(4)]);
    assert_eq!(one("edit"), PluginFrame::Edit { seq: 3, nodes, removed, below: vec![NodeId(1)] });
    let answer = ReviewAnswer {
        choices: vec![
            ChangeChoice { id: NodeId(2).into(), choice: Choice::Push },
            ChangeChoice { id: TempId::from("x3").into(), choice: Choice::Skip },
        ],
        all: None,
    };
    let review_id = ReviewId::from("7c0a9d52-5c7e-4a53-9f0e-2b7d3f5a9e40");
    assert_eq!(one("reviewed"), PluginFrame::Reviewed { review_id: review_id.clone(), answer });
    assert_eq!(one("reviewText"), PluginFrame::ReviewText { review_id, id: NodeId(2).into() });
    assert_eq!(one("unknown"), PluginFrame::Unknown { kind: "telepathy".into() });
    let progress = |progress, total, message: Option<&str>| PluginFrame::Progress {
        request_id: request_id.clone(),
        progress,
        total,
        message: message.map(str::to_owned),
    };
    assert_eq!(one("progress"), progress(3.0, Some(10.0), Some("3 of 10")));
    assert_eq!(one("progress_bare"), progress(0.5, None, None));
    let PluginFrame::Result(result) = one("result_getScript") else { panic!("a result") };
    assert_eq!((result.request_id, result.status.as_str()), (request_id, "success"));
    assert_eq!(result.fields["isDraft"], json!(false));
    assert_eq!(result.fields.get("status"), None, "what is read is taken out");
}

#[test]
fn what_a_play_server_says_of_its_clients_is_read_field_by_field() {
    let logical_id = LogicalId::from("9b1f0f3e-7a52-4a3d-8c11-d0a4b6c7e8f9");
    let attach = |role, player: &str, in_flight: &[&str]| PluginFrame::Attach {
        logical_id: logical_id.clone(),
        role,
        player: player.into(),
        in_flight: in_flight.iter().map(|id| RequestId::from(*id)).collect(),
    };
    assert_eq!(one("attach"), attach(None, "Player1", &[]));
    assert_eq!(one("attach_again"), attach(Target::client(2), "Player2", &[]));
    let busy = ["5f0c1a52-3d0e-4a3b-9f52-6f7a1b2c3d4e"];
    assert_eq!(one("attach_busy"), attach(Target::client(2), "Player2", &busy));
    assert_eq!(one("detach"), PluginFrame::Detach { logical_id: logical_id.clone() });
    let printed = PluginFrame::RobloxLog { message: "from a client".into(), level: 0, logical_id: Some(logical_id) };
    assert_eq!(one("roblox_log_client"), printed);
    for role in ["server", "edit", "client-0", ""] {
        let text = json!({"type": "attach", "logicalId": "x", "role": role, "player": "p"}).to_string();
        let error = PluginFrame::parse(&text).expect_err("no client");
        assert!(error.detail.contains("`role`"), "{role}: {error}");
    }
}
