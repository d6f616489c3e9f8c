//! A person at the terminal, who is asked what the server wants to know.

use std::{
    collections::VecDeque,
    io::{self, BufRead, IsTerminal, Write},
};

use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use crate::core::text::for_terminal;

/// How to answer.
const HELP: &str = "y: as proposed, n: leave it, push: the files win, pull: Studio wins, all: y for all that follow";

/// Somebody who can be asked. What they type is read as it comes.
pub(super) struct Asker {
    typed: mpsc::UnboundedReceiver<String>,
    /// What is typed before a question is there does not answer it.
    only_after: bool,
    /// What is being asked.
    form: Option<Form>,
}

/// A question of the server's with several parts.
struct Form {
    /// The id of its request.
    request: Value,
    left: VecDeque<Question>,
    content: Map<String, Value>,
}

/// One part: a choice of words.
#[derive(Debug, Clone)]
struct Question {
    name: String,
    title: String,
    words: Vec<String>,
    default: String,
}

impl Asker {
    /// Whoever types into this command; `None`: nobody, for it is no terminal.
    pub(super) fn at_terminal() -> Option<Self> {
        let typed = || Self { only_after: true, ..Self::reading(io::BufReader::new(io::stdin())) };
        io::stdin().is_terminal().then(typed)
    }

    fn reading(from: impl BufRead + Send + 'static) -> Self {
        let (tell, typed) = mpsc::unbounded_channel();
        // It ends with the process, or with the input.
        std::thread::spawn(move || {
            for line in from.lines() {
                let Ok(line) = line else { break };
                if tell.send(line).is_err() {
                    break;
                }
            }
        });
        Self { typed, only_after: false, form: None }
    }

    /// The server asks.
    pub(super) fn ask(&mut self, request: Value, params: &Value, out: &mut dyn Write) {
        while self.only_after && self.typed.try_recv().is_ok() {}
        let properties = params["requestedSchema"]["properties"].as_object().cloned().unwrap_or_default();
        let left = properties.iter().map(|(name, property)| Question::of(name, property)).collect();
        let message = params["message"].as_str().unwrap_or_default();
        say(out, &format!("{}({HELP})\n", for_terminal(message)));
        self.form = Some(Form { request, left, content: Map::new() });
        self.prompt(out);
    }

    /// The server no longer wants to know.
    pub(super) fn withdraw(&mut self, request: &Value, out: &mut dyn Write) {
        if self.form.as_ref().is_some_and(|form| form.request == *request) {
            self.form = None;
            say(out, "\nit was answered elsewhere, or is over\n");
        }
    }

    /// Wait until the question is answered: the response to the server. For ever, if there is none.
    pub(super) async fn answered(&mut self, out: &mut (dyn Write + Send)) -> Value {
        loop {
            if self.form.is_none() {
                return std::future::pending().await;
            }
            let line = self.typed.recv().await;
            if let Some(response) = self.take(line.as_deref(), out) {
                return response;
            }
        }
    }

    /// A line was typed (`None`: the input has ended). The response, once all is answered.
    fn take(&mut self, line: Option<&str>, out: &mut dyn Write) -> Option<Value> {
        let form = self.form.as_mut()?;
        let Some(line) = line else {
            let request = self.form.take()?.request;
            return Some(json!({ "jsonrpc": "2.0", "id": request, "result": { "action": "cancel" } }));
        };
        let typed = line.trim().to_lowercase();
        let all = typed == "all";
        let question = form.left.front().cloned();
        match question.as_ref().map(|question| question.word(&typed)) {
            Some(None) => say(out, &format!("{HELP}\n")),
            Some(Some(word)) => {
                form.left.pop_front();
                form.content.insert(question.unwrap_or_else(|| unreachable!("it has a word")).name, json!(word));
            }
            None => {}
        }
        if all {
            form.content.extend(form.left.drain(..).map(|question| (question.name, json!(question.default))));
        }
        if form.left.is_empty() {
            let Form { request, content, .. } = self.form.take()?;
            let result = json!({ "action": "accept", "content": content });
            return Some(json!({ "jsonrpc": "2.0", "id": request, "result": result }));
        }
        self.prompt(out);
        None
    }

    fn prompt(&self, out: &mut dyn Write) {
        let Some(question) = self.form.as_ref().and_then(|form| form.left.front()) else { return };
        say(out, &format!("{} [{}] ({}) ", question.title, question.words.join("/"), question.default));
    }
}

impl Question {
    fn of(name: &str, property: &Value) -> Self {
        let text = |key: &str| property[key].as_str().map(for_terminal).unwrap_or_default();
        let words = property["enum"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        let title = format!("{}, {}", text("title"), text("description"));
        Self { name: name.to_owned(), title, words: words.collect(), default: text("default").to_string() }
    }

    /// What was typed, as one of the words.
    fn word(&self, typed: &str) -> Option<String> {
        let word = match typed {
            "" | "y" | "yes" | "all" => &self.default,
            "n" | "no" => "skip",
            typed => typed,
        };
        self.words.iter().find(|known| *known == word).cloned()
    }
}

fn say(out: &mut dyn Write, text: &str) {
    // Whoever cannot be told cannot answer either.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params() -> Value {
        let proposed = json!({ "type": "string", "title": "A", "description": "push edit",
            "enum": ["accept", "push", "pull", "skip"], "default": "accept" });
        let undecided = json!({ "type": "string", "title": "B", "description": "undecided edit",
            "enum": ["skip", "push", "pull"], "default": "skip" });
        let properties = json!({ "n1": proposed, "n2": undecided, "n3": undecided });
        json!({ "message": "what?\n", "requestedSchema": { "type": "object", "properties": properties } })
    }

    async fn typing(text: &'static str) -> (Value, String) {
        let mut asker = Asker::reading(text.as_bytes());
        let mut out = Vec::new();
        asker.ask(json!(7), &params(), &mut out);
        let response = asker.answered(&mut out).await;
        (response, String::from_utf8(out).expect("text"))
    }

    #[tokio::test]
    async fn each_change_is_asked_about_and_a_typo_is_asked_again() {
        let (response, out) = typing("y\npsh\nPush\nn\n").await;
        let content = json!({ "n1": "accept", "n2": "push", "n3": "skip" });
        let expected = json!({ "jsonrpc": "2.0", "id": 7, "result": { "action": "accept", "content": content } });
        assert_eq!(response, expected);
        assert_eq!(out.matches("B, undecided edit [skip/push/pull] (skip) ").count(), 3, "{out}");
    }

    #[tokio::test]
    async fn all_is_an_answer_for_the_rest_and_the_end_of_the_input_is_none() {
        let (response, _) = typing("pull\nall\n").await;
        assert_eq!(response["result"]["content"], json!({ "n1": "pull", "n2": "skip", "n3": "skip" }));
        let (response, _) = typing("y\n").await;
        assert_eq!(response["result"], json!({ "action": "cancel" }));
    }

    #[tokio::test]
    async fn a_question_that_is_answered_elsewhere_goes_away() {
        let mut asker = Asker::reading("y\n".as_bytes());
        let mut out = Vec::new();
        asker.ask(json!(7), &params(), &mut out);
        asker.withdraw(&json!(8), &mut out);
        assert!(asker.form.is_some());
        asker.withdraw(&json!(7), &mut out);
        assert!(asker.form.is_none());
        assert!(String::from_utf8(out).expect("text").contains("answered elsewhere"));
    }
}
