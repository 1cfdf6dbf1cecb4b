//! `/docs`: the API reference as one page, made from the document by the hub itself; nothing is loaded from elsewhere.

mod operation;
mod schema;

use crate::Hub;
use crate::http::openapi;
use axum::Router;
use axum::body::Bytes;
use axum::http::header;
use axum::response::{IntoResponse, Redirect};
use axum::routing::get;
use operation::{Operation, operations};
use serde_json::Value;
use std::fmt::Write;
use std::sync::LazyLock;

static PAGE: LazyLock<Bytes> = LazyLock::new(|| page(openapi::document()).into());

/// Everything the page needs is in it; this makes browsers refuse anything else.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub fn routes() -> Router<Hub> {
    Router::new()
        .route("/", get(async || Redirect::temporary("/docs")))
        .route("/docs", get(show))
        .route("/openapi.json", get(openapi::serve))
        .route("/api/assisted-install/openapi", get(openapi::serve))
        .route("/api/assisted-install/v2/openapi", get(openapi::serve))
}

async fn show() -> impl IntoResponse {
    let kind = (header::CONTENT_TYPE, "text/html; charset=utf-8");
    ([kind, (header::CONTENT_SECURITY_POLICY, POLICY)], PAGE.clone())
}

pub fn page(document: &Value) -> String {
    let operations = operations(document);
    let info = &document["info"];
    let mut html = String::with_capacity(1 << 20);
    let _ = write!(
        html,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>{title} API</title>\
         <link rel=\"icon\" href=\"data:,\"><style>{css}</style></head><body>\
         <header><h1>{title} API <small>{version}</small></h1>{about}\
         <p><a href=\"/openapi.json\">OpenAPI document</a> · <a href=\"#schemas\">Schemas</a></p></header>",
        title = text(&info["title"]),
        version = text(&info["version"]),
        about = prose(info["description"].as_str().unwrap_or_default()),
        css = include_str!("docs/page.css"),
    );
    navigation(&mut html, document, &operations);
    html.push_str("<main>");
    for tag in document["tags"].as_array().into_iter().flatten() {
        let name = tag["name"].as_str().unwrap_or_default();
        let about = prose(tag["description"].as_str().unwrap_or_default());
        let _ = write!(html, "<section id=\"tag-{0}\"><h2>{0}</h2>{about}", escaped(name));
        operations
            .iter()
            .filter(|operation| operation.tag == name)
            .for_each(|operation| {
                operation.write(&mut html, document);
            });
        html.push_str("</section>");
    }
    schemas(&mut html, document);
    let _ = writeln!(
        html,
        "</main><script>{}</script></body></html>",
        include_str!("docs/page.js")
    );
    html
}

fn navigation(html: &mut String, document: &Value, operations: &[Operation<'_>]) {
    html.push_str(
        "<nav aria-label=\"Operations\"><input id=\"filter\" type=\"search\" placeholder=\"Filter operations\" \
         aria-label=\"Filter operations\">",
    );
    for tag in document["tags"].as_array().into_iter().flatten() {
        let name = tag["name"].as_str().unwrap_or_default();
        let _ = write!(html, "<details open><summary>{}</summary><ul>", escaped(name));
        for operation in operations.iter().filter(|operation| operation.tag == name) {
            let _ = write!(
                html,
                "<li data-find=\"{find}\"><a href=\"#{id}\">{badge} {title}</a></li>",
                find = escaped(&operation.find()),
                id = escaped(operation.id),
                badge = operation.badge(),
                title = escaped(operation.title()),
            );
        }
        html.push_str("</ul></details>");
    }
    html.push_str("</nav>");
}

fn schemas(html: &mut String, document: &Value) {
    html.push_str("<section id=\"schemas\"><h2>Schemas</h2>");
    for (name, schema) in document["components"]["schemas"]
        .as_object()
        .into_iter()
        .flatten()
    {
        let _ = write!(
            html,
            "<details class=\"card\" id=\"{id}\"><summary><code>{name}</code></summary>{about}{table}</details>",
            id = schema::anchor(name),
            name = escaped(name),
            about = prose(schema["description"].as_str().unwrap_or_default()),
            table = schema::table(schema),
        );
    }
    html.push_str("</section>");
}

fn text(value: &Value) -> String {
    escaped(value.as_str().unwrap_or_default())
}

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            letter => safe.push(letter),
        }
    }
    safe
}

/// Text with `code` in it, as sentences.
fn inline(text: &str) -> String {
    let parts = text.split('`').enumerate();
    parts
        .map(|(index, part)| match index % 2 {
            0 => escaped(part),
            _ => format!("<code>{}</code>", escaped(part)),
        })
        .collect()
}

/// Text with `code` in it, as paragraphs.
fn prose(text: &str) -> String {
    let paragraphs = text
        .split("\n\n")
        .filter(|paragraph| !paragraph.trim().is_empty());
    paragraphs
        .map(|paragraph| format!("<p>{}</p>", inline(paragraph.trim())))
        .collect()
}
