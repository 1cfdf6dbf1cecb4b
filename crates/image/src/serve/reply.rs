//! Decides what a request gets of a representation: status, headers and the bytes, as a layout.

use super::range::{Wanted, wanted};
use crate::layout::Layout;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use std::ops::Range;
use std::time::{Duration, SystemTime};

/// One state of one image; the bytes behind an ETag never change.
#[derive(Clone, Debug)]
pub struct Representation {
    pub layout: Layout,
    /// With its quotes.
    pub etag: String,
    /// In whole seconds, as HTTP tells it.
    pub modified: SystemTime,
    pub content_type: &'static str,
    pub filename: String,
}

#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// Empty for HEAD, though the headers tell the length.
    pub body: Layout,
    /// What of the representation is in the body.
    pub parts: Vec<Range<u64>>,
}

impl Reply {
    pub fn text(status: StatusCode, text: impl Into<String>) -> Reply {
        let body = Layout::of_bytes(text.into() + "\n");
        let mut headers = HeaderMap::new();
        put(&mut headers, header::CONTENT_TYPE, "text/plain; charset=utf-8");
        put(&mut headers, header::CONTENT_LENGTH, &body.len().to_string());
        Reply {
            status,
            headers,
            body,
            parts: Vec::new(),
        }
    }

    pub fn for_method(mut self, method: &Method) -> Reply {
        if method == Method::HEAD {
            self.body = Layout::default();
            self.parts = Vec::new();
        }
        self
    }
}

/// `now` decides whether a date is old enough to be trusted: within one second an image may have changed twice.
pub fn reply(method: &Method, asked: &HeaderMap, image: &Representation, now: SystemTime) -> Reply {
    let mut headers = HeaderMap::new();
    put(&mut headers, header::ACCEPT_RANGES, "bytes");
    put(&mut headers, header::ETAG, &image.etag);
    put(
        &mut headers,
        header::LAST_MODIFIED,
        &httpdate::fmt_http_date(image.modified),
    );
    // Shared caches on the way must not hand out what holds secrets.
    put(&mut headers, header::CACHE_CONTROL, "private, no-cache");
    let reply = match condition(asked, image) {
        Some(status) => Reply {
            status,
            headers,
            body: Layout::default(),
            parts: Vec::new(),
        },
        None => content(asked, image, headers, now),
    };
    reply.for_method(method)
}

fn content(asked: &HeaderMap, image: &Representation, mut headers: HeaderMap, now: SystemTime) -> Reply {
    let len = image.layout.len();
    let disposition = format!("attachment; filename={}", image.filename);
    put(&mut headers, header::CONTENT_DISPOSITION, &disposition);
    let range = text(asked, header::RANGE).filter(|_| still_the_same(asked, image, now));
    let (status, body, parts, content_type) = match range.map_or(Wanted::Whole, |range| wanted(range, len)) {
        Wanted::Whole => (
            StatusCode::OK,
            image.layout.clone(),
            std::iter::once(0..len).collect(),
            image.content_type.to_owned(),
        ),
        Wanted::Nothing => {
            let mut reply = Reply::text(
                StatusCode::RANGE_NOT_SATISFIABLE,
                format!("the image has {len} bytes"),
            );
            put(
                &mut reply.headers,
                header::CONTENT_RANGE,
                &format!("bytes */{len}"),
            );
            put(&mut reply.headers, header::ETAG, &image.etag);
            return reply;
        }
        Wanted::Parts(parts) => match parts.as_slice() {
            [part] => {
                put(&mut headers, header::CONTENT_RANGE, &content_range(part, len));
                let body = image.layout.slice(part.clone());
                (
                    StatusCode::PARTIAL_CONTENT,
                    body,
                    parts,
                    image.content_type.to_owned(),
                )
            }
            _ => {
                let boundary = boundary(image);
                let kind = format!("multipart/byteranges; boundary={boundary}");
                let body = multipart(image, &parts, &boundary);
                (StatusCode::PARTIAL_CONTENT, body, parts, kind)
            }
        },
    };
    put(&mut headers, header::CONTENT_TYPE, &content_type);
    put(&mut headers, header::CONTENT_LENGTH, &body.len().to_string());
    Reply {
        status,
        headers,
        body,
        parts,
    }
}

/// Conditions in the order of the standard; `Some` ends the request without a body.
fn condition(asked: &HeaderMap, image: &Representation) -> Option<StatusCode> {
    let date = |name| text(asked, name).and_then(|text| httpdate::parse_http_date(text).ok());
    if let Some(list) = text(asked, header::IF_MATCH) {
        if !names(list, &image.etag, false) {
            return Some(StatusCode::PRECONDITION_FAILED);
        }
    } else if date(header::IF_UNMODIFIED_SINCE).is_some_and(|since| image.modified > since) {
        return Some(StatusCode::PRECONDITION_FAILED);
    }
    if let Some(list) = text(asked, header::IF_NONE_MATCH) {
        return names(list, &image.etag, true).then_some(StatusCode::NOT_MODIFIED);
    }
    let since = date(header::IF_MODIFIED_SINCE)?;
    (image.modified <= since).then_some(StatusCode::NOT_MODIFIED)
}

/// Whether a range of what the client began with may be given from what there is now.
fn still_the_same(asked: &HeaderMap, image: &Representation, now: SystemTime) -> bool {
    let Some(validator) = asked.get(header::IF_RANGE) else {
        return true;
    };
    let Ok(validator) = validator.to_str().map(str::trim) else {
        return false;
    };
    if validator.starts_with('"') {
        return validator == image.etag;
    }
    let old_enough = now
        .duration_since(image.modified)
        .is_ok_and(|age| age >= Duration::from_secs(2));
    old_enough && httpdate::parse_http_date(validator).is_ok_and(|date| date == image.modified)
}

fn names(list: &str, etag: &str, weak: bool) -> bool {
    list.split(',').map(str::trim).any(|one| {
        one == "*" || one == etag || (weak && one.strip_prefix("W/").is_some_and(|strong| strong == etag))
    })
}

/// Made from the ETag, so that equal questions get equal answers; images do not contain their own hash.
fn boundary(image: &Representation) -> String {
    format!("part-{}", image.etag.trim_matches('"'))
}

fn multipart(image: &Representation, parts: &[Range<u64>], boundary: &str) -> Layout {
    let len = image.layout.len();
    let mut body = Layout::default();
    for (number, part) in parts.iter().enumerate() {
        let start = if number == 0 { "" } else { "\r\n" };
        body.push_bytes(format!(
            "{start}--{boundary}\r\nContent-Type: {}\r\nContent-Range: {}\r\n\r\n",
            image.content_type,
            content_range(part, len)
        ));
        body.append(image.layout.slice(part.clone()));
    }
    body.push_bytes(format!("\r\n--{boundary}--\r\n"));
    body
}

fn content_range(part: &Range<u64>, len: u64) -> String {
    format!("bytes {}-{}/{len}", part.start, part.end - 1)
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

pub(super) fn put(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    // Everything we put is made of visible characters, but for names that came in a URL.
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}
