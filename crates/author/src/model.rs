use crate::{Answer, Author, AuthorError, Chat, Conversation, Listener, Request, Sampling, extract};

/// A language model as an author: prompts in, code out.
pub struct Model {
    chat: Box<dyn Chat>,
    conversation: Conversation,
}

impl Model {
    pub fn new(chat: Box<dyn Chat>, conversation: Conversation) -> Self {
        Self { chat, conversation }
    }
}

impl Author for Model {
    fn name(&self) -> &str {
        self.chat.name()
    }

    fn write(&self, request: &Request<'_>, listener: &mut Listener<'_>) -> Result<Answer, AuthorError> {
        let messages = self.conversation.messages(request, self.chat.question_tokens())?;
        let sampling = Sampling { sample: request.sample, seed: request.seed };
        let reply = self.chat.say(&messages, sampling, listener)?;
        let variant = format!("answer {}", request.sample);
        let (source, notes) = match extract(&reply.text, reply.truncated) {
            Ok(found) => (Ok(found.source), found.notes),
            Err(why) => (Err(why), Vec::new()),
        };
        Ok(Answer {
            variant,
            source,
            notes,
            messages,
            reply: reply.text,
            truncated: reply.truncated,
            usage: reply.usage,
        })
    }
}
