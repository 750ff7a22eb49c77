//! Says an answer in the dialect of whoever asked, as a stream of server-sent events.

use super::asked::{Asked, Dialect};
use super::script::{Answer, Kind};
use serde_json::{Value, json};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncWriteExt, DuplexStream};

/// Into how many parts a slow answer is cut.
const PARTS: u32 = 20;
/// How long an answer that hangs keeps the line open: longer than any scenario.
const FOR_EVER: Duration = Duration::from_secs(3600);

/// Where events go.
struct Stream {
    writer: DuplexStream,
    pause: Duration,
}

impl Stream {
    async fn event(&mut self, name: Option<&str>, data: &Value) -> io::Result<()> {
        let name = name.map(|name| format!("event: {name}\n")).unwrap_or_default();
        self.writer.write_all(format!("{name}data: {data}\n\n").as_bytes()).await?;
        self.writer.flush().await
    }

    /// The parts of a text, each after its pause.
    fn parts(&self, text: &str) -> Vec<String> {
        let count = if self.pause.is_zero() { 2 } else { PARTS as usize };
        let letters: Vec<char> = text.chars().collect();
        let size = letters.len().div_ceil(count).max(1);
        letters.chunks(size).map(|part| part.iter().collect()).collect()
    }
}

/// Says it.
///
/// # Errors
/// Whoever asked has hung up.
pub(crate) async fn speak(writer: DuplexStream, asked: &Asked, answer: &Answer) -> io::Result<()> {
    let mut stream = Stream { writer, pause: answer.spread / PARTS };
    match asked.dialect {
        Dialect::Anthropic => anthropic(&mut stream, asked, answer).await,
        Dialect::Responses => responses(&mut stream, asked, answer).await,
        Dialect::Chat => chat(&mut stream, asked, answer).await,
        Dialect::Gemini => gemini(&mut stream, asked, answer).await,
    }
}

/// An id that was not used before.
fn id(kind: &str) -> String {
    format!("{kind}_{}", uuid::Uuid::new_v4().simple())
}

async fn hang(answer: &Answer) {
    if answer.hangs {
        tokio::time::sleep(FOR_EVER).await;
    }
}

async fn anthropic(stream: &mut Stream, asked: &Asked, answer: &Answer) -> io::Result<()> {
    let usage = json!({"input_tokens": answer.tokens, "output_tokens": 1, "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0});
    let message = json!({"id": id("msg"), "type": "message", "role": "assistant", "model": asked.model, "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage});
    stream.event(Some("message_start"), &json!({"type": "message_start", "message": message})).await?;
    hang(answer).await;
    let blocks: Vec<(Value, &str, String)> = match &answer.kind {
        Kind::Texts(texts) => {
            texts.iter().map(|text| (json!({"type": "text", "text": ""}), "text", text.clone())).collect()
        }
        Kind::Call { name, arguments } => {
            let block = json!({"type": "tool_use", "id": id("toolu"), "name": name, "input": {}});
            vec![(block, "partial_json", arguments.to_string())]
        }
        Kind::Error(_) | Kind::UsedUp(_) => Vec::new(),
    };
    for (index, (block, field, text)) in blocks.iter().enumerate() {
        let start = json!({"type": "content_block_start", "index": index, "content_block": block});
        stream.event(Some("content_block_start"), &start).await?;
        let kind = if *field == "text" { "text_delta" } else { "input_json_delta" };
        for part in stream.parts(text) {
            tokio::time::sleep(stream.pause).await;
            let delta = json!({"type": kind, *field: part});
            let event = json!({"type": "content_block_delta", "index": index, "delta": delta});
            stream.event(Some("content_block_delta"), &event).await?;
        }
        stream.event(Some("content_block_stop"), &json!({"type": "content_block_stop", "index": index})).await?;
    }
    let reason = if matches!(answer.kind, Kind::Call { .. }) { "tool_use" } else { "end_turn" };
    let delta = json!({"stop_reason": reason, "stop_sequence": null});
    let end = json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 12}});
    stream.event(Some("message_delta"), &end).await?;
    stream.event(Some("message_stop"), &json!({"type": "message_stop"})).await
}

async fn responses(stream: &mut Stream, asked: &Asked, answer: &Answer) -> io::Result<()> {
    let base = json!({"id": id("resp"), "object": "response", "created_at": 0, "model": asked.model,
        "status": "in_progress", "output": []});
    stream.event(Some("response.created"), &json!({"type": "response.created", "response": base})).await?;
    hang(answer).await;
    let items: Vec<Value> = match &answer.kind {
        Kind::Texts(texts) => vec![message_item(texts)],
        Kind::Call { name, arguments: Value::String(input) } => {
            vec![json!({"type": "custom_tool_call", "id": id("ctc"), "call_id": id("call"), "name": name,
                "input": input, "status": "completed"})]
        }
        Kind::Call { name, arguments } => {
            vec![json!({"type": "function_call", "id": id("fc"), "call_id": id("call"), "name": name,
                "arguments": arguments.to_string(), "status": "completed"})]
        }
        Kind::Error(_) | Kind::UsedUp(_) => Vec::new(),
    };
    for (index, item) in items.iter().enumerate() {
        let contents = item["content"].as_array().cloned().unwrap_or_default();
        let mut begun = item.clone();
        begun["status"] = json!("in_progress");
        if !contents.is_empty() {
            begun["content"] = json!([]);
        }
        let added = json!({"type": "response.output_item.added", "output_index": index, "item": begun});
        stream.event(Some("response.output_item.added"), &added).await?;
        for (at, content) in contents.iter().enumerate() {
            for part in stream.parts(content["text"].as_str().unwrap_or_default()) {
                tokio::time::sleep(stream.pause).await;
                let delta = json!({"type": "response.output_text.delta", "item_id": item["id"],
                    "output_index": index, "content_index": at, "delta": part});
                stream.event(Some("response.output_text.delta"), &delta).await?;
            }
        }
        let done = json!({"type": "response.output_item.done", "output_index": index, "item": item});
        stream.event(Some("response.output_item.done"), &done).await?;
    }
    let mut done = base;
    done["status"] = json!("completed");
    done["output"] = json!(items);
    done["usage"] = json!({"input_tokens": answer.tokens, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 12, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": answer.tokens + 12});
    stream.event(Some("response.completed"), &json!({"type": "response.completed", "response": done})).await
}

/// One message, whose texts are parts of it.
fn message_item(texts: &[String]) -> Value {
    let part = |text: &String| json!({"type": "output_text", "text": text, "annotations": []});
    let content: Vec<Value> = texts.iter().map(part).collect();
    json!({"type": "message", "id": id("msg"), "role": "assistant", "status": "completed", "content": content})
}

async fn chat(stream: &mut Stream, asked: &Asked, answer: &Answer) -> io::Result<()> {
    let chunk = |delta: &Value, end: Option<&str>| {
        json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": asked.model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": end}]})
    };
    stream.event(None, &chunk(&json!({"role": "assistant", "content": ""}), None)).await?;
    hang(answer).await;
    let end = match &answer.kind {
        Kind::Texts(texts) => {
            for part in stream.parts(&texts.join("\n")) {
                tokio::time::sleep(stream.pause).await;
                stream.event(None, &chunk(&json!({"content": part}), None)).await?;
            }
            "stop"
        }
        Kind::Call { name, arguments } => {
            let call = json!({"index": 0, "id": id("call"), "type": "function",
                "function": {"name": name, "arguments": arguments.to_string()}});
            stream.event(None, &chunk(&json!({"tool_calls": [call]}), None)).await?;
            "tool_calls"
        }
        Kind::Error(_) | Kind::UsedUp(_) => "stop",
    };
    let mut last = chunk(&json!({}), Some(end));
    last["usage"] =
        json!({"prompt_tokens": answer.tokens, "completion_tokens": 12, "total_tokens": answer.tokens + 12});
    stream.event(None, &last).await?;
    stream.writer.write_all(b"data: [DONE]\n\n").await
}

async fn gemini(stream: &mut Stream, asked: &Asked, answer: &Answer) -> io::Result<()> {
    let usage = json!({"promptTokenCount": answer.tokens, "candidatesTokenCount": 12,
        "totalTokenCount": answer.tokens + 12});
    let chunk = |part: &Value, end: Option<&str>| {
        let mut candidate = json!({"content": {"role": "model", "parts": [part]}, "index": 0});
        if let Some(end) = end {
            candidate["finishReason"] = json!(end);
        }
        json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": asked.model})
    };
    hang(answer).await;
    match &answer.kind {
        Kind::Texts(texts) => {
            for part in stream.parts(&texts.join("\n")) {
                tokio::time::sleep(stream.pause).await;
                stream.event(None, &chunk(&json!({"text": part}), None)).await?;
            }
            stream.event(None, &chunk(&json!({"text": ""}), Some("STOP"))).await
        }
        Kind::Call { name, arguments } => {
            let call = json!({"functionCall": {"name": name, "args": arguments}});
            stream.event(None, &chunk(&call, Some("STOP"))).await
        }
        Kind::Error(_) | Kind::UsedUp(_) => Ok(()),
    }
}
