//! A quantised model of the llama family, run in this process on its CPU.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use candle_core::quantized::gguf_file::Content;
use candle_core::quantized::tokenizer::TokenizerFromGguf;
use candle_core::{Device, Tensor};
use candle_transformers::generation::LogitsProcessor;
use candle_transformers::models::quantized_llama::{MAX_SEQ_LEN, ModelWeights};
use minijinja::{Environment, Value, context};
use tokenizers::Tokenizer;

use crate::chat::tell;
use crate::{Chat, ChatError, GgufEntry, Listener, Message, Piece, Reply, Role, Sampling, Usage};

/// What most small models are trained on, for files whose own template is not there or not understood.
const CHAT_ML: &str = "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n\
                       {% endfor %}<|im_start|>assistant\n";
/// Where a file does not say how many tokens its model attends to.
const DEFAULT_CONTEXT: u64 = 2048;

/// A model with its tokenizer. One answer at a time: the model keeps what it has read.
pub struct Gguf {
    name: String,
    path: PathBuf,
    entry: GgufEntry,
    tokenizer: Tokenizer,
    template: Option<String>,
    /// Tokens that end an answer: the first one also ends a text, for templates.
    ends: Vec<u32>,
    context_tokens: u64,
    model: Mutex<ModelWeights>,
}

#[derive(Debug, thiserror::Error)]
#[error("failed to load {}: {why}", path.display())]
pub struct GgufError {
    path: PathBuf,
    why: String,
}

impl Gguf {
    /// Reads the file of a model; seconds.
    pub fn open(name: &str, path: &Path, entry: &GgufEntry) -> Result<Self, GgufError> {
        let failed = |why: String| GgufError { path: path.to_owned(), why };
        let mut file = File::open(path).map_err(|error| failed(error.to_string()))?;
        let content = Content::read(&mut file).map_err(|error| failed(error.to_string()))?;
        let tokenizer = Tokenizer::from_gguf(&content).map_err(|error| failed(error.to_string()))?;
        let text = |key: &str| content.metadata.get(key).and_then(|value| value.to_string().ok()).cloned();
        let number = |key: &str| content.metadata.get(key).and_then(|value| value.to_u32().ok());
        let template = text("tokenizer.chat_template");
        let ends =
            ["tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"].into_iter().filter_map(number).collect();
        // What this implementation of the model has positions for is a bound too.
        let context_tokens = number("llama.context_length").map_or(DEFAULT_CONTEXT, u64::from).min(MAX_SEQ_LEN as u64);
        let model =
            ModelWeights::from_gguf(content, &mut file, &Device::Cpu).map_err(|error| failed(error.to_string()))?;
        Ok(Self {
            name: name.into(),
            path: path.to_owned(),
            entry: entry.clone(),
            tokenizer,
            template,
            ends,
            context_tokens,
            model: Mutex::new(model),
        })
    }

    /// The messages as the model was trained to read them, up to where it is to go on.
    fn prompt(&self, messages: &[Message]) -> Result<String, ChatError> {
        let role = |role| match role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        let told = messages.iter().map(|one| {
            Value::from_pairs([("role", Value::from(role(one.role))), ("content", Value::from(one.content.as_str()))])
        });
        let told: Vec<Value> = told.collect();
        let render = |template: &str| {
            let special = |id: Option<u32>| id.and_then(|id| self.tokenizer.id_to_token(id)).unwrap_or_default();
            Environment::new().render_str(
                template,
                context! { messages => told.clone(), add_generation_prompt => true, bos_token => "", eos_token => special(self.ends.first().copied()) },
            )
        };
        let own = self.template.as_deref().and_then(|template| render(template).ok());
        own.map_or_else(|| render(CHAT_ML), Ok).map_err(local)
    }

    fn generate(
        &self,
        prompt: &str,
        sampling: Sampling,
        listener: &mut Listener<'_>,
    ) -> Result<(String, Usage, bool), ChatError> {
        let read = self.tokenizer.encode(prompt, false).map_err(local)?.get_ids().to_vec();
        if read.len() as u64 >= self.context_tokens {
            let (asked, most) = (read.len(), self.context_tokens);
            return Err(ChatError::Local(format!("the question has {asked} tokens, and the model attends to {most}")));
        }
        let room = self.context_tokens.saturating_sub(read.len() as u64).min(u64::from(self.entry.max_tokens));
        let mut chooser = LogitsProcessor::new(sampling.seed, Some(self.entry.temperature), self.entry.top_p);
        let mut decoder = self.tokenizer.decode_stream(true);
        let mut model = self.model.lock().unwrap_or_else(PoisonError::into_inner);
        let start = Instant::now();
        // A model reads a question in one go: whoever is to hear of it hears of it before.
        tell(listener, Piece::Reading(read.len() as u64))?;
        let (mut text, mut input, mut position, mut written) = (String::new(), read.clone(), 0, 0);
        let mut ended = false;
        while written < room {
            let tokens = Tensor::new(input.as_slice(), &Device::Cpu).and_then(|tokens| tokens.unsqueeze(0));
            let logits =
                tokens.and_then(|tokens| model.forward(&tokens, position)).and_then(|logits| logits.squeeze(0));
            let next = logits.and_then(|logits| chooser.sample(&logits)).map_err(local)?;
            position += input.len();
            if self.ends.contains(&next) {
                ended = true;
                break;
            }
            written += 1;
            if let Some(piece) = decoder.step(next).map_err(local)? {
                tell(listener, Piece::Text(&piece))?;
                text += &piece;
            }
            input = vec![next];
        }
        let usage = Usage {
            input_tokens: read.len() as u64,
            output_tokens: written,
            seconds: start.elapsed().as_secs_f64(),
            ..Usage::default()
        };
        Ok((text, usage, !ended))
    }
}

fn local(error: impl std::fmt::Display) -> ChatError {
    ChatError::Local(error.to_string())
}

impl Chat for Gguf {
    fn name(&self) -> &str {
        &self.name
    }

    fn say(&self, messages: &[Message], sampling: Sampling, listener: &mut Listener<'_>) -> Result<Reply, ChatError> {
        let (text, usage, truncated) = self.generate(&self.prompt(messages)?, sampling, listener)?;
        Ok(Reply { text, model: self.path.display().to_string(), truncated, usage })
    }

    fn question_tokens(&self) -> Option<u64> {
        let context = self.entry.context_tokens.min(self.context_tokens);
        Some(context.saturating_sub(u64::from(self.entry.max_tokens)))
    }
}
