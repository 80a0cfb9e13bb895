//! A language model as an author, against a server that says what a script tells it to.

#[path = "support/server.rs"]
mod server;

use std::ops::ControlFlow;
use std::path::Path;

use serde_json::{Value, json};
use server::{Server, Step, completion, events};
use tilewright_author::{
    Answer, Author, AuthorError, Client, Config, Conversation, Goal, Hardware, Model, NoCode, Piece, Request, Style,
    Turn,
};
use tilewright_contract::{Target, Verdict};

const KEY: &str = "sk-test-0b2f61aa97d3";
const PROBLEM: &str = "class Model(nn.Module): ...  # softmax {{ not a template }}";
const FILE: &str = "import triton\n\n@triton.jit\ndef k(): pass\n\nclass ModelNew: pass\n";

fn model(url: &str, further: &str, conversation: Conversation) -> Model {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tilewright.toml");
    std::fs::write(folder.path().join("key"), KEY).expect("a file");
    let text = format!("[endpoints.m]\nbase_url = {url:?}\nmodel = \"asked\"\nkey_file = \"key\"\n{further}\n");
    std::fs::write(&path, text).expect("a file");
    let config = Config::read(&path).expect("a configuration");
    Model::new(Box::new(Client::new(&config, "m").expect("a client")), conversation)
}

fn goal(hardware: Hardware) -> Goal {
    let target = Target { backend: "cuda".into(), arch: "90".into(), warp_size: 32 };
    Goal { hardware, target, device: "cpu".into() }
}

/// Asks for candidate 3 after these turns; gives what was heard on the way too.
fn ask(model: &Model, hardware: Hardware, turns: &[Turn]) -> (Result<Answer, AuthorError>, String) {
    let goal = goal(hardware);
    let request = Request { problem: Path::new("p.py"), text: PROBLEM, goal: &goal, sample: 3, seed: 1 << 40, turns };
    let mut heard = String::new();
    let answer = model.write(&request, &mut |piece| {
        match piece {
            Piece::Text(text) => heard += text,
            Piece::Thought(text) => heard += &format!("({text})"),
            Piece::Again(why) => heard += &format!("[{why}]"),
            Piece::Reading(_) => {}
        }
        ControlFlow::Continue(())
    });
    (answer, heard)
}

fn first(steps: Vec<Step>, further: &str) -> (Result<Answer, AuthorError>, String, Vec<String>) {
    let server = Server::start(steps);
    let (answer, heard) = ask(&model(&server.url, further, Conversation::default()), Hardware::Cuda, &[]);
    if let Ok(answer) = &answer {
        assert!(!serde_json::to_string(answer).expect("a document").contains(KEY));
    }
    (answer, heard, server.requests())
}

fn body(request: &str) -> Value {
    let (_, body) = request.split_once("\n\n").or_else(|| request.split_once("\r\n\n")).expect("a body");
    serde_json::from_str(body).expect("JSON")
}

fn verdict(kind: &str, message: &str) -> Verdict {
    serde_json::from_value(json!({
        "schema": Verdict::SCHEMA, "verdict": kind, "fault": "candidate", "target": "cpu", "arch": null, "trust": "replay",
        "problem": {"path": "p.py", "digest": "d"}, "candidate": {"path": "c.py", "digest": "d"}, "profiles": {},
        "reasons": [{"code": "values", "message": message}], "resources": {}, "timing": null, "stages": [], "weights": null,
    }))
    .expect("a verdict")
}

fn turn(number: usize, kind: &str) -> Turn {
    Turn {
        source: Ok(format!("# attempt {number}\n{FILE}")),
        verdict: Some(verdict(kind, &format!("reason {number}"))),
    }
}

#[test]
fn an_answer_comes_in_pieces_and_is_accounted_for() {
    let said = format!("Here it is, é.\n```python\n{FILE}```\n");
    let further = "temperature = 0.7\ntop_p = 0.97\nreasoning_effort = \"high\"\nmax_tokens = 99\nsend_seed = true\n\
                   max_tokens_field = \"max_completion_tokens\"\nprice_input = 1.0\nprice_output = 10.0\nextra = { top_k = 5 }";
    let (answer, heard, requests) = first(vec![Step::Stream(events(&said, "stop"))], further);
    let answer = answer.expect("an answer");
    assert_eq!(
        (answer.source.as_deref(), answer.reply.as_str(), heard.as_str()),
        (Ok(FILE), said.as_str(), said.as_str())
    );
    assert_eq!((answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.estimated), (40, 10, false));
    assert!((answer.usage.cost - 140e-6).abs() < 1e-12);
    let body = body(&requests[0]);
    for (field, value) in [
        ("temperature", json!(0.7)),
        ("top_p", json!(0.97)),
        ("reasoning_effort", json!("high")),
        ("max_completion_tokens", json!(99)),
        ("top_k", json!(5)),
        ("stream", json!(true)),
        ("seed", json!(1 << 7)),
    ] {
        assert_eq!(body[field], value, "{field}");
    }
    assert!(body.get("max_tokens").is_none());
    assert_eq!(body["messages"], json!(answer.messages));
}

#[test]
fn the_first_question_holds_the_module_the_rules_and_the_hardware() {
    for (hardware, told, untold) in [(Hardware::Cuda, "sm_90", "Ascend"), (Hardware::Ascend, "65535", "sm_90")] {
        let server = Server::saying("no");
        let model = model(&server.url, "", Conversation::default());
        let messages = ask(&model, hardware, &[]).0.expect("an answer").messages;
        let text = &messages[1].content;
        assert!(text.contains(PROBLEM) && text.contains("class ModelNew") && text.contains("torch.empty"), "{text}");
        assert!(text.contains(told) && !text.contains(untold), "{text}");
        assert_eq!(messages.len(), 2);
    }
}

#[test]
fn later_questions_hold_what_became_of_the_last_answers() {
    let server = Server::saying("no");
    let conversation = Conversation { window: 2, style: Style::Coach, ..Conversation::default() };
    let turns = [turn(1, "incorrect"), turn(2, "compile_error"), turn(3, "accepted")];
    let messages = ask(&model(&server.url, "", conversation), Hardware::Cuda, &turns).0.expect("an answer").messages;
    assert_eq!(messages.len(), 6);
    let [_, first, said, repair, last, optimise] = messages.as_slice() else { panic!() };
    assert!(first.content.contains("incorrect: reason 1") && !first.content.contains("attempt 1"), "{}", first.content);
    assert!(said.content.contains("# attempt 2") && last.content.contains("# attempt 3"));
    assert!(repair.content.contains("not accepted") && repair.content.contains("reason 2"));
    assert!(optimise.content.contains("faster") && optimise.content.contains("PERFORMANCE"));
    assert!(!repair.content.contains("RESULT"), "an older verdict is told in short: {}", repair.content);
}

#[test]
fn a_conversation_keeps_to_its_tokens() {
    let server = Server::saying("no");
    let turns: Vec<Turn> = (0..6)
        .map(|number| {
            let mut turn = turn(number, "incorrect");
            turn.source = turn.source.map(|source| source + &"# padding\n".repeat(600));
            turn
        })
        .collect();
    let mut lengths = Vec::new();
    for context in [100_000, 14_000, 9_000, 6_000] {
        let conversation = Conversation { window: 6, ..Conversation::default() };
        let model = model(&server.url, &format!("context_tokens = {context}\nmax_tokens = 1000"), conversation);
        let messages = ask(&model, Hardware::Cuda, &turns).0.expect("an answer").messages;
        assert!(messages[1].content.contains(PROBLEM));
        assert!(messages[messages.len() - 2].content.contains("# attempt 5"), "the last candidate stays");
        if context > 6_000 {
            let tokens: usize = messages.iter().map(|message| message.content.len() / 3).sum();
            assert!(tokens <= context - 1000, "{tokens} of {context}");
        }
        lengths.push(messages.len());
    }
    assert!(lengths.is_sorted_by(|a, b| a >= b) && lengths[0] == 14 && lengths[3] == 4, "{lengths:?}");
}

#[test]
fn prompts_may_be_the_users_own() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("first.j2"), "MINE {{ problem }} {% include 'rules.j2' %}").expect("a file");
    let conversation = |folder: &Path| Conversation { prompts: Some(folder.to_owned()), ..Conversation::default() };
    let server = Server::saying("no");
    let answer = ask(&model(&server.url, "", conversation(folder.path())), Hardware::Cuda, &[]).0.expect("an answer");
    let text = &answer.messages[1].content;
    assert!(text.starts_with(&format!("MINE {PROBLEM} Rules:")), "{text}");
    std::fs::write(folder.path().join("first.j2"), "{{ unknown }}").expect("a file");
    let error =
        ask(&model(&server.url, "", conversation(folder.path())), Hardware::Cuda, &[]).0.expect_err("a mistake");
    assert!(matches!(error, AuthorError::Prompt(_)) && !error.may_pass(), "{error}");
}

#[test]
fn what_passes_is_tried_again_and_told() {
    let said = format!("```python\n{FILE}```");
    let good = || Step::Stream(events(&said, "stop"));
    let cut = events(&said, "stop")[..300].to_vec();
    for (steps, told) in [
        (vec![Step::Say(429, "retry-after: 0\r\n", "slow down".into()), good()], "429: slow down"),
        (vec![Step::Say(500, "retry-after: 0\r\n", "oops".into()), good()], "500: oops"),
        (vec![Step::Stream(cut), good()], "broke off after"),
        (vec![Step::Raw(""), good()], "no connection"),
        (vec![Step::CutOff(completion(&said)), good()], "no connection"),
        (
            vec![Step::Stream(b"data: {\"error\": {\"code\": 503, \"message\": \"overloaded\"}}\n\n".to_vec()), good()],
            "503",
        ),
    ] {
        let (answer, heard, requests) = first(steps, "");
        assert_eq!(answer.expect("an answer").source.as_deref(), Ok(FILE), "{told}");
        assert!(heard.contains(told) && requests.len() == 2, "{told}: {heard}");
    }
}

#[test]
fn what_does_not_pass_is_told_once() {
    let wrong = |body: &[u8]| Step::Stream([b"data: ", body, b"\n\n"].concat());
    // The last column: whether the next question may be answered all the same.
    for (step, told, may_pass) in [
        (Step::Say(401, "", format!("bad key {KEY}")), "401: bad key (hidden)", false),
        (Step::Say(404, "", "no such model".into()), "404: no such model; asked at http://127.0.0.1", false),
        (Step::Say(302, "location: /login\r\n", String::new()), "302: it points to /login, and is not followed", false),
        (Step::Say(200, "", String::new()), "no chat completion: it is empty", true),
        (Step::Say(200, "", "<html>Log in</html>".into()), "line 1 column 1: <html>Log in", true),
        (Step::Say(200, "", r#"{"choices": []}"#.into()), "no choices: {\"choices\": []}", true),
        (Step::Say(429, "retry-after: 3600\r\n", "slow down".into()), "429: slow down; it asks to wait 3600 s", true),
        (wrong(b"\xff\xfe not UTF-8"), "no chat completion", true),
        (wrong(br#"{"choices": "all of them"}"#), "no chat completion", true),
        (Step::Silence, "no answer within 1 s", true),
        (Step::Drip, "no answer within 1 s", true),
        (Step::Endless, "more than", true),
    ] {
        // A loaded machine may take its time to read what comes.
        let further = if told.contains("within 1 s") { "timeout_s = 1.0" } else { "timeout_s = 60.0" };
        let (answer, _, requests) = first(vec![step.clone()], further);
        let error = answer.expect_err("no answer");
        let text = error.to_string();
        assert!(text.contains(told) && !text.contains(KEY) && !format!("{error:?}").contains(KEY), "{step:?}: {text}");
        assert_eq!((error.may_pass(), requests.len()), (may_pass, 1), "{step:?}: {text}");
    }
}

#[test]
fn a_server_that_repeats_the_key_shows_it_to_nobody() {
    let said = format!("Your key is {KEY}.\n```python\n# {KEY}\n{FILE}```");
    let wrong = format!("data: {}\n\n", json!({"error": {"message": format!("bad key {KEY}"), "code": 401}}));
    let thought =
        format!("data: {}\n\n", json!({"choices": [{"delta": {"reasoning_content": format!("it is {KEY}")}}]}));
    let thought = [thought.into_bytes(), events(&said, "stop")].concat();
    let named = completion(&said).replace("judge-1", KEY);
    for step in [
        // In pieces of 16 characters, in one piece, in a thought, as the model's name, and in errors of all kinds.
        Step::Stream(events(&said, "stop")),
        Step::Say(200, "", completion(&said)),
        Step::Stream(thought),
        Step::Say(200, "", named),
        Step::Stream(wrong.into_bytes()),
        Step::Say(400, "", format!("{{\"error\": \"key {KEY}\"}}")),
        Step::Say(500, "retry-after: 0\r\n", format!("{}{KEY}", "x".repeat(290))),
        Step::Say(200, "", format!("{{\"choices\": \"{KEY}\"}}")),
        Step::Stream(format!("data: {{\"choices\": \"{KEY}\"}}\n\n").into_bytes()),
    ] {
        let server = Server::start(vec![step.clone()]);
        let (answer, heard) = ask(&model(&server.url, "retries = 1", Conversation::default()), Hardware::Cuda, &[]);
        let told = match &answer {
            Ok(answer) => serde_json::to_string(answer).expect("a document"),
            Err(error) => format!("{error} {error:?}"),
        };
        // Nor a part of it, where a message is cut off.
        let part = &KEY[..KEY.len() - 2];
        assert!(!told.contains(part) && !heard.contains(part), "{step:?}: {told} {heard}");
        if let Ok(answer) = answer {
            assert!(heard.is_empty() || heard.ends_with(&answer.reply), "what is heard is what is kept");
            assert!(answer.source.expect("code").contains("# (hidden)"));
        }
    }
}

#[test]
fn an_answer_without_code_is_an_answer_all_the_same() {
    let long = format!("```python\n{FILE}{}```", "# 200 kB of it\n".repeat(20_000));
    for (said, finish, why) in [
        ("", "stop", NoCode::Empty),
        ("I would rather not.", "stop", NoCode::NoBlock),
        ("<think>hm", "stop", NoCode::OnlyThoughts),
        ("```python\nimport triton\n", "length", NoCode::Truncated),
        (long.as_str(), "stop", NoCode::TooLong { bytes: FILE.len() + 300_000 }),
    ] {
        let (answer, ..) = first(vec![Step::Stream(events(said, finish))], "");
        let answer = answer.expect("an answer");
        assert_eq!((answer.source, answer.reply.as_str()), (Err(why), said));
        assert_eq!(answer.usage.tokens(), 50, "it cost something");
    }
}

#[test]
fn tokens_that_no_server_counts_are_guessed() {
    let stream = format!("data: {}\n\ndata: [DONE]\n\n", json!({"choices": [{"delta": {"content": "x".repeat(300)}}]}));
    let (answer, ..) = first(vec![Step::Stream(stream.into_bytes())], "");
    let usage = answer.expect("an answer").usage;
    assert!(usage.estimated && usage.output_tokens == 100 && usage.input_tokens > 500, "{usage:?}");
}
