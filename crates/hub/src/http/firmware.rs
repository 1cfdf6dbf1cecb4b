//! What is offered without TLS where TLS is spoken: what firmware needs to boot a machine, and nothing else. Whoever asks
//! for more hears where it is.

use crate::http::{problem, v1::input};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use muster_contract::{v1, v2};
use muster_image::serve::path::is_ours;
use std::sync::Arc;

/// Firmware cannot be given an authority, nor tell one from another; agents and people can.
const SCRIPT: &str = "ipxe-script";

/// Refuses whatever firmware does not need. `https` is where the rest is.
pub async fn only(State(https): State<Arc<str>>, request: Request, next: Next) -> Response {
    let uri = request.uri();
    if is_needed(request.method(), uri.path(), uri.query()) {
        return next.run(request).await;
    }
    refusal(uri.path(), &https)
}

/// Refuses everything, for clients that speak http where https is spoken.
pub fn nothing(https: Arc<str>) -> Router {
    let refuse =
        async |State(https): State<Arc<str>>, request: Request| refusal(request.uri().path(), &https);
    Router::new().fallback(refuse).with_state(https)
}

/// Images, what boots over the network, and the script that starts it.
pub fn is_needed(method: &Method, path: &str, query: Option<&str>) -> bool {
    let reads = matches!(*method, Method::GET | Method::HEAD);
    reads && (is_ours(path) || is_script(path, query.unwrap_or_default()))
}

/// The files beside the script tell secrets.
fn is_script(path: &str, query: &str) -> bool {
    let inside = path
        .strip_prefix(v2::BASE)
        .and_then(|path| path.strip_prefix("/infra-envs/"))
        .and_then(|path| path.split_once('/'));
    let named = serde_urlencoded::from_str::<Vec<(String, String)>>(query).unwrap_or_default();
    let mut files = named.iter().filter(|(name, _)| name == "file_name");
    let is_named = files.next().is_some_and(|(_, file)| file == SCRIPT) && files.next().is_none();
    is_named && inside.is_some_and(|(_, rest)| rest == "downloads/files")
}

/// A status that no agent gives up at, in the shape of the API that was asked.
fn refusal(path: &str, https: &str) -> Response {
    let detail = format!("this is offered only with TLS, at {https}");
    let fix = format!("Use {https}, and trust the authority that signed its certificate.");
    let status = StatusCode::UPGRADE_REQUIRED;
    let mut response = if path.starts_with(v1::BASE) {
        input::problem(status, "tls-required", detail, &fix).into_response()
    } else {
        problem::framework(status, format!("{detail}. {fix}"))
    };
    let headers = response.headers_mut();
    headers.insert(header::UPGRADE, HeaderValue::from_static("TLS/1.2, HTTP/1.1"));
    // The body of the request is not read.
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade, close"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn firmware_reads_images_and_scripts_and_nothing_else() {
        let files = "/api/assisted-install/v2/infra-envs/1f0c/downloads/files";
        for (method, path, query, needed) in [
            (Method::GET, "/images/1f0c/pxe-initrd", None, true),
            (Method::HEAD, "/byid/1f0c/4.20/x86_64/full.iso", None, true),
            (Method::GET, "/boot-artifacts/kernel", Some("version=4.20"), true),
            (Method::GET, "/i/1f0c.iso", None, true),
            (Method::GET, files, Some("file_name=ipxe-script"), true),
            (
                Method::GET,
                files,
                Some("mac=52%3A54&file_name=ipxe-script"),
                true,
            ),
            (Method::GET, files, Some("file_name=discovery.ign"), false),
            (
                Method::GET,
                files,
                Some("file_name=ipxe-script&file_name=discovery.ign"),
                false,
            ),
            (
                Method::GET,
                files,
                Some("file_name=discovery.ign&file_name=ipxe-script"),
                false,
            ),
            (Method::GET, files, None, false),
            (Method::POST, "/images/1f0c/pxe-initrd", None, false),
            (Method::POST, files, Some("file_name=ipxe-script"), false),
            (
                Method::GET,
                "/api/assisted-install/v2/infra-envs",
                Some("file_name=ipxe-script"),
                false,
            ),
            (
                Method::GET,
                "/api/assisted-install/v2/clusters/1/downloads/files",
                Some("file_name=ipxe-script"),
                false,
            ),
            (Method::GET, "/metrics", None, false),
            (Method::GET, "/", None, false),
        ] {
            assert_eq!(
                is_needed(&method, path, query),
                needed,
                "{method} {path} {query:?}"
            );
        }
    }
}
