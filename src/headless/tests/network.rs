//! Stream clients and requests against real sockets.

use super::{super::*, studio, studio_with};
use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_tungstenite::{WebSocketStream, accept_async, tungstenite::Message};

/// Opens `url` as a plugin does and records every event as `name(state)`.
const CLIENT: &str = r#"
    local events = {}
    local client = game:GetService("HttpService"):CreateWebStreamClient(Enum.WebStreamClientType.WebSocket, { Url = URL })
    local function note(name)
        return function(first)
            table.insert(events, `{name}({client.ConnectionState.Name})`)
        end
    end
    client.Opened:Connect(note("Opened"))
    client.Error:Connect(note("Error"))
    client.Closed:Connect(note("Closed"))
"#;

async fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound socket has an address");
    (listener, format!("ws://{address}/stream"))
}

async fn accept(listener: &TcpListener) -> WebSocketStream<TcpStream> {
    let (socket, _) = listener.accept().await.expect("the client connects");
    accept_async(socket).await.expect("the client speaks WebSocket")
}

fn client(url: &str, rest: &str) -> String {
    CLIENT.replace("URL", &format!("{url:?}")) + rest
}

#[tokio::test]
async fn frames_go_both_ways() {
    let (listener, url) = listener().await;
    let server = async {
        let mut socket = accept(&listener).await;
        while let Some(Ok(message)) = socket.next().await {
            if message.is_text() {
                socket.send(message).await.expect("the client reads");
            }
        }
    };
    let studio = studio();
    let code = client(
        &url,
        r#"
        client.Opened:Wait()
        local big = string.rep("ü", 5_000_000)
        client:Send("hello") client:Send(big)
        local first = client.MessageReceived:Wait()
        local second = client.MessageReceived:Wait()
        client:Close()
        client.Closed:Wait()
        return first, second == big, events, client.ConnectionState.Name
    "#,
    );
    let (values, ()) = tokio::join!(studio.run(&code), server);
    assert_eq!(
        values,
        Ok(vec![json!("hello"), json!(true), json!(["Opened(Open)", "Closed(Closed)"]), json!("Closed")])
    );
}

#[tokio::test]
async fn a_close_by_the_server_is_closed_and_no_error() {
    let (listener, url) = listener().await;
    let server = async { accept(&listener).await.close(None).await.expect("the close frame is sent") };
    let studio = studio();
    let code = client(&url, "client.Closed:Wait() task.wait() return events");
    let (values, ()) = tokio::join!(studio.run(&code), server);
    assert_eq!(values, Ok(vec![json!(["Opened(Open)", "Closed(Closed)"])]));
}

async fn events_of_a_refused_connection(loss_events: LossEvents, last: &str) -> serde_json::Value {
    let (listener, url) = listener().await;
    drop(listener);
    let studio = studio_with("", Knobs { loss_events, ..Knobs::default() });
    let values = studio.run(&client(&url, &format!("client.{last}:Wait() task.wait() return events"))).await;
    values.expect("the events are recorded").remove(0)
}

#[tokio::test]
async fn a_refused_connection_tells_in_the_order_of_the_knob() {
    let events = events_of_a_refused_connection(LossEvents::ErrorThenClosed, "Closed").await;
    assert_eq!(events, json!(["Error(Error)", "Closed(Closed)"]));
    let events = events_of_a_refused_connection(LossEvents::ClosedThenError, "Error").await;
    assert_eq!(events, json!(["Closed(Closed)", "Error(Closed)"]));
    let events = events_of_a_refused_connection(LossEvents::ErrorOnly, "Error").await;
    assert_eq!(events, json!(["Error(Error)"]));
    let events = events_of_a_refused_connection(LossEvents::ClosedOnly, "Closed").await;
    assert_eq!(events, json!(["Closed(Closed)"]));
}

#[tokio::test]
async fn dropped_sockets_end_both_sides_without_a_close_frame() {
    let (listener, url) = listener().await;
    let studio = studio();
    let code = client(&url, "client.Opened:Wait() print('open') client.Closed:Wait() return events");
    let test = async {
        let mut socket = accept(&listener).await;
        // The frame the client sends is the sign that it is open.
        socket.send(Message::text("ready?")).await.expect("the client reads");
        studio.drop_sockets().await;
        loop {
            match socket.next().await {
                Some(Ok(Message::Close(_))) => panic!("a close frame came"),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => break,
            }
        }
    };
    let (values, ()) = tokio::join!(studio.run(&code), test);
    let events = values.expect("the events are recorded").remove(0);
    assert_eq!(events.as_array().and_then(|all| all.last()), Some(&json!("Closed(Closed)")));
    assert!(events.to_string().contains("Error(Error)"), "{events}");
}

#[tokio::test]
async fn the_stream_limit_is_named_and_closing_makes_room() {
    let (listener, url) = listener().await;
    let server = async {
        loop {
            let mut socket = accept(&listener).await;
            tokio::spawn(async move { while socket.next().await.is_some() {} });
        }
    };
    let studio = studio_with("", Knobs { stream_limit: 2, ..Knobs::default() });
    let code = format!(
        r#"
        local http = game:GetService("HttpService")
        local function open() return http:CreateWebStreamClient(Enum.WebStreamClientType.WebSocket, {{ Url = {url:?} }}) end
        local first, second = open(), open()
        first.Opened:Wait()
        local allowed, message = pcall(open)
        first:Close() first.Closed:Wait()
        return allowed, message, (pcall(open))
    "#
    );
    let values = tokio::select! {
        values = studio.run(&code) => values.expect("the code runs"),
        () = server => unreachable!("the server never ends"),
    };
    assert_eq!(values[0], json!(false));
    assert!(values[1].as_str().is_some_and(|message| message.contains("no more than 2")), "{values:?}");
    assert_eq!(values[2], json!(true));
}

#[tokio::test]
async fn a_stream_client_is_an_object_that_guards_send() {
    let (listener, url) = listener().await;
    let studio = studio();
    let code = client(
        &url,
        r#"
        return typeof(client), tostring(client), pcall(function() client:Send("early") end),
            pcall(function() client:Destroy() end)
    "#,
    );
    let values = studio.run(&code).await.expect("the code runs");
    assert_eq!(values[..2], [json!("Object"), json!("WebStreamClient")]);
    assert_eq!(values[2], json!(false));
    assert_eq!(values.last(), Some(&json!("Destroy is not a valid member of WebStreamClient \"WebStreamClient\"")));
    drop(listener);
}

#[tokio::test]
async fn a_request_carries_method_headers_and_body() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound socket has an address");
    let server = async {
        let (mut socket, _) = listener.accept().await.expect("the client connects");
        let mut request = Vec::new();
        while !request.ends_with(b"ping") {
            let mut part = [0; 1024];
            let length = socket.read(&mut part).await.expect("the request arrives");
            request.extend(part.iter().take(length));
        }
        let answer = "HTTP/1.1 201 Created\r\nx-answer: yes\r\ncontent-length: 4\r\n\r\npong";
        socket.write_all(answer.as_bytes()).await.expect("the client reads");
        String::from_utf8_lossy(&request).into_owned()
    };
    let studio = studio();
    let code = format!(
        r#"
        local response = game:GetService("HttpService"):RequestAsync({{
            Url = "http://{address}/path?q=1", Method = "POST", Headers = {{ ["X-Test"] = "1" }}, Body = "ping",
        }})
        return response.Success, response.StatusCode, response.StatusMessage, response.Headers["x-answer"], response.Body
    "#
    );
    let (values, request) = tokio::join!(studio.run(&code), server);
    assert_eq!(values, Ok(vec![json!(true), json!(201), json!("Created"), json!("yes"), json!("pong")]));
    assert!(request.starts_with("POST /path?q=1 HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("x-test: 1"), "{request}");
}

#[tokio::test]
async fn only_this_machine_is_reachable() {
    let studio = studio();
    let values = studio.run(
        r#"
        local http = game:GetService("HttpService")
        return select(2, pcall(http.RequestAsync, http, { Url = "http://192.0.2.1/" })),
            select(2, pcall(http.RequestAsync, http, { Url = "https://localhost/" })),
            select(2, pcall(http.RequestAsync, http, { Url = "http://127.0.0.1:1/" }))
    "#,
    );
    let values = values.await.expect("the code runs");
    assert_eq!(values[0], json!("the headless Studio reaches this machine only, not 192.0.2.1"));
    assert_eq!(values[1], json!("https is not simulated by the headless Studio, only http://"));
    assert_eq!(values[2], json!("HttpError: ConnectFail"));
}

#[tokio::test]
async fn the_shipped_plugin_says_hello_and_runs_code() {
    let (listener, url) = listener().await;
    let mut settings = serde_json::Map::new();
    settings.insert("RojoMcpServer".to_owned(), json!(url.trim_end_matches("/stream").trim_start_matches("ws://")));
    let config = HeadlessConfig {
        plugin: crate::plugin_model::build().expect("the embedded sources are a project"),
        settings,
        place_id: 7,
        ..HeadlessConfig::default()
    };
    let studio = HeadlessStudio::start(config).expect("the Studio starts");
    let mut socket = accept(&listener).await;
    let hello = next_frame(&mut socket, |frame| frame["type"] == "hello").await;
    assert_eq!((&hello["placeId"], &hello["protocol"]), (&json!(7), &json!(1)), "{hello}");
    let request = json!({
        "type": "run_code", "requestId": "r1", "n": 1, "remainingMs": 5000,
        "args": { "command": "return workspace:GetFullName(), 1 + 1" },
    });
    for frame in [
        json!({ "type": "welcome", "protocol": 1, "serverId": "s", "treeId": "t", "project": "p",
        "serverVersion": "0", "assignedRole": "edit", "heartbeatSeconds": 5 }),
        request,
    ] {
        socket.send(Message::text(frame.to_string())).await.expect("the plugin reads");
    }
    let result = next_frame(&mut socket, |frame| frame["requestId"] == "r1").await;
    assert_eq!(result["status"], "success", "{result}");
    assert!(result["response"].to_string().contains("Workspace"), "{result}");
    let goodbye = tokio::spawn(studio.stop());
    next_frame(&mut socket, |frame| frame["type"] == "bye").await;
    goodbye.await.expect("it stops");
}

async fn next_frame(
    socket: &mut WebSocketStream<TcpStream>,
    wanted: impl Fn(&serde_json::Value) -> bool,
) -> serde_json::Value {
    loop {
        let message = socket.next().await.expect("the plugin is connected").expect("a frame");
        if let Message::Text(text) = message {
            let frame = serde_json::from_str(&text).expect("frames are JSON");
            if wanted(&frame) {
                return frame;
            }
        }
    }
}

#[tokio::test]
async fn five_hundred_requests_a_minute_and_no_more() {
    let studio = studio();
    let code = r#"
        local http = game:GetService("HttpService")
        local refused, problem = 0, nil
        for _ = 1, 501 do
            task.spawn(function()
                local _, text = pcall(http.RequestAsync, http, { Url = "http://127.0.0.1:9/" })
                if string.find(text, "exceeded limit") then
                    refused, problem = refused + 1, text
                end
            end)
        end
        return refused, problem
    "#;
    assert_eq!(studio.run(code).await, Ok(vec![json!(1), json!("Number of requests exceeded limit")]));
}
