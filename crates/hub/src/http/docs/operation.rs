//! One operation on the page: what it takes, what it answers, and a command to try it.

use super::{escaped, inline, prose, schema};
use serde_json::Value;
use std::fmt::Write;

pub struct Operation<'a> {
    pub id: &'a str,
    pub tag: &'a str,
    method: &'a str,
    path: &'a str,
    value: &'a Value,
}

/// All operations, by path and then in the order people think of methods.
pub fn operations(document: &Value) -> Vec<Operation<'_>> {
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for method in ["post", "get", "put", "patch", "delete"] {
            let Some(value) = item.get(method) else { continue };
            let id = value["operationId"].as_str().unwrap_or_default();
            let tag = value["tags"][0].as_str().unwrap_or_default();
            all.push(Operation {
                id,
                tag,
                method,
                path,
                value,
            });
        }
    }
    all
}

impl Operation<'_> {
    pub fn title(&self) -> &str {
        self.value["summary"].as_str().unwrap_or(self.id)
    }

    pub fn badge(&self) -> String {
        let shown = if self.method == "delete" {
            "del".into()
        } else {
            self.method.to_owned()
        };
        format!("<b class=\"method {}\">{shown}</b>", self.method)
    }

    /// What the filter looks in.
    pub fn find(&self) -> String {
        format!("{} {} {} {}", self.method, self.path, self.id, self.title()).to_lowercase()
    }

    pub fn write(&self, html: &mut String, document: &Value) {
        let _ = write!(
            html,
            "<details class=\"card\" id=\"{id}\" data-find=\"{find}\"><summary>{badge} <code>{path}</code> \
             <span>{title}</span></summary>{about}<p class=\"quiet\">Operation <code>{id}</code> \
             <a href=\"#{id}\" aria-label=\"Link to this operation\">#</a></p>",
            id = escaped(self.id),
            find = escaped(&self.find()),
            badge = self.badge(),
            // Long paths may break after a slash.
            path = escaped(self.path).replace('/', "/<wbr>"),
            title = escaped(self.title()),
            about = prose(self.value["description"].as_str().unwrap_or_default()),
        );
        self.parameters(html);
        self.body(html, document);
        self.responses(html);
        let _ = write!(
            html,
            "<h4>Try it</h4><div class=\"copy\"><button type=\"button\">Copy</button><pre><code>{}</code></pre></div>\
             </details>",
            escaped(&self.command(document)),
        );
    }

    fn parameters(&self, html: &mut String) {
        let Some(parameters) = self.value["parameters"]
            .as_array()
            .filter(|list| !list.is_empty())
        else {
            return;
        };
        html.push_str("<h4>Parameters</h4><table><thead><tr><th>Name</th><th>Type</th><th>About</th></tr></thead><tbody>");
        for parameter in parameters {
            let about = format!(
                "{}: {}",
                parameter["in"].as_str().unwrap_or_default(),
                parameter["description"].as_str().unwrap_or_default()
            );
            let about = about.trim_end_matches(": ");
            let name = parameter["name"].as_str().unwrap_or_default();
            schema::row(
                html,
                name,
                parameter["required"] == true,
                &parameter["schema"],
                Some(about),
            );
        }
        html.push_str("</tbody></table>");
    }

    fn body(&self, html: &mut String, document: &Value) {
        for (kind, content) in self.value["requestBody"]["content"]
            .as_object()
            .into_iter()
            .flatten()
        {
            let body = &content["schema"];
            let _ = write!(
                html,
                "<h4>Body</h4><p><code>{}</code>: {}</p>{}",
                escaped(kind),
                schema::kind(body),
                schema::table(schema::resolved(document, body)),
            );
        }
    }

    fn responses(&self, html: &mut String) {
        html.push_str(
            "<h4>Answers</h4><table><thead><tr><th>Status</th><th>Body</th><th>When</th></tr></thead><tbody>",
        );
        for (status, response) in self.value["responses"].as_object().into_iter().flatten() {
            let content = response["content"].as_object();
            let kinds: Vec<_> = content
                .into_iter()
                .flatten()
                .map(|(_, body)| schema::kind(&body["schema"]))
                .collect();
            let headers: Vec<_> = response["headers"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, _)| name)
                .collect();
            let mut about = inline(response["description"].as_str().unwrap_or_default());
            if !headers.is_empty() {
                let names: Vec<_> = headers
                    .iter()
                    .map(|name| format!("<code>{}</code>", escaped(name)))
                    .collect();
                let _ = write!(about, " Headers: {}", names.join(", "));
            }
            let _ = write!(
                html,
                "<tr><td><code>{}</code></td><td>{}</td><td>{about}</td></tr>",
                escaped(status),
                if kinds.is_empty() {
                    "–".into()
                } else {
                    kinds.join(" or ")
                },
            );
        }
        html.push_str("</tbody></table>");
    }

    /// A shell command with the variable parts as shell variables.
    fn command(&self, document: &Value) -> String {
        let path = self.path.replace('{', "${");
        let mut command = format!("curl -sS -X {} \"$HUB{path}", self.method.to_uppercase());
        let parameters = self.value["parameters"].as_array().into_iter().flatten();
        let required = parameters.filter(|one| one["in"] == "query" && one["required"] == true);
        for (index, parameter) in required.enumerate() {
            let name = parameter["name"].as_str().unwrap_or_default();
            let _ = write!(
                command,
                "{}{name}=${{{name}}}",
                if index == 0 { '?' } else { '&' }
            );
        }
        command.push('"');
        if let Some(body) = self.value["requestBody"]["content"].get("application/json") {
            let body = schema::example(document, &body["schema"], 2);
            let _ = write!(
                command,
                " \\\n  -H 'Content-Type: application/json' \\\n  -d '{body}'"
            );
        }
        command
    }
}
