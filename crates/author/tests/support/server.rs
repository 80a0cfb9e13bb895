//! A server that says what a script tells it to, on a port of this machine. Each request takes the next step; the last
//! step stays.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A status with headers (each ending in a line break) and a body.
    Say(u16, &'static str, String),
    /// A body that is announced longer than it is.
    CutOff(String),
    /// Nothing, for ever.
    Silence,
    /// A byte of the body now and then, for ever.
    Drip,
    /// A body without an end.
    Endless,
    /// No HTTP.
    Raw(&'static str),
    /// A stream of server-sent events as these bytes, closed after them.
    Stream(Vec<u8>),
}

pub(crate) struct Server {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(crate) fn start(steps: Vec<Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = requests.clone();
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let step = steps.get(number).or(steps.last()).cloned().expect("a step");
                let seen = seen.clone();
                std::thread::spawn(move || stream.and_then(|stream| serve(stream, &step, &seen)));
            }
        });
        Self { url, requests }
    }

    /// A server that answers every question with this text of a model.
    pub(crate) fn saying(text: &str) -> Self {
        Self::start(vec![Step::Say(200, "", completion(text))])
    }

    /// The requests so far: head and body.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("the requests").clone()
    }
}

/// A chat completion with this text.
pub(crate) fn completion(text: &str) -> String {
    let text = serde_json::Value::from(text);
    format!(
        r#"{{"id": "x", "object": "chat.completion", "model": "judge-1", "choices": [{{"index": 0, "finish_reason": "stop",
        "message": {{"role": "assistant", "content": {text}}}}}], "usage": {{"prompt_tokens": 40, "total_tokens": 50}}}}"#
    )
}

/// A stream that says this text, a few characters an event.
pub(crate) fn events(text: &str, finish: &str) -> Vec<u8> {
    let pieces: Vec<char> = text.chars().collect();
    let piece = |chars: &[char]| serde_json::Value::from(chars.iter().collect::<String>());
    let mut out = String::new();
    for chars in pieces.chunks(16) {
        out += &format!("data: {{\"choices\": [{{\"delta\": {{\"content\": {}}}}}]}}\n\n", piece(chars));
    }
    out += &format!("data: {{\"choices\": [{{\"delta\": {{}}, \"finish_reason\": \"{finish}\"}}]}}\n\n");
    out += "data: {\"choices\": [], \"usage\": {\"prompt_tokens\": 40, \"completion_tokens\": 10}}\n\ndata: [DONE]\n\n";
    out.into_bytes()
}

fn serve(stream: TcpStream, step: &Step, seen: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let request = read(&stream)?;
    seen.lock().expect("the requests").push(request);
    let mut stream = stream;
    match step {
        Step::Say(status, headers, body) => {
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 {status} X\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}"
            )
        }
        Step::CutOff(body) => {
            let length = body.len() + 100;
            write!(stream, "HTTP/1.1 200 X\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
        }
        Step::Silence => loop {
            std::thread::sleep(Duration::from_secs(1));
        },
        Step::Drip => {
            write!(stream, "HTTP/1.1 200 X\r\ncontent-length: 100000\r\n\r\n")?;
            loop {
                stream.write_all(b" ")?;
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        Step::Endless => {
            write!(stream, "HTTP/1.1 200 X\r\nconnection: close\r\n\r\n")?;
            loop {
                stream.write_all(&[b' '; 1 << 16])?;
            }
        }
        Step::Raw(text) => stream.write_all(text.as_bytes()),
        Step::Stream(events) => {
            write!(stream, "HTTP/1.1 200 X\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n")?;
            // In several packets, whose borders are nowhere near those of events.
            events
                .chunks(1 + events.len() / 7)
                .try_for_each(|part| stream.write_all(part).and_then(|()| stream.flush()))
        }
    }
}

fn read(stream: &TcpStream) -> std::io::Result<String> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(format!("{head}\n{}", String::from_utf8_lossy(&body)))
}
