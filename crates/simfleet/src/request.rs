//! What a simulated host asks its driver to do, and what it learns afterwards.

use crate::job::Job;
use http::Method;
use http::header::CONTENT_TYPE;
use std::sync::Arc;
use uuid::Uuid;

/// What a host wants now.
#[derive(Debug)]
pub enum Next {
    /// Perform this, then call `receive` with its tag. The host may want more meanwhile: poll again.
    Send(Request),
    /// Nothing before this time.
    WaitUntil(u64),
    /// Nothing until an outstanding request is answered; without one, never again.
    Idle,
}

/// One HTTP request.
#[derive(Debug)]
pub struct Request {
    pub method: Method,
    /// Path and query.
    pub path: String,
    pub body: Vec<u8>,
    pub content_type: &'static str,
    /// Sent as `discovery_agent_version` where the agent names itself.
    pub agent_version: Option<Arc<str>>,
    pub request_id: Uuid,
    pub tag: Tag,
}

/// Which request an outcome belongs to. Give it back to `receive`.
#[derive(Debug)]
pub struct Tag {
    pub call: Call,
    /// The runner process that asked; answers to one that ended are dropped.
    pub(crate) run: u16,
    /// The boot in which it was asked.
    pub(crate) boot: u16,
}

#[derive(Debug)]
pub enum Call {
    Register,
    Poll,
    Reply(Box<Job>),
    /// The stage that a host's installation has reached.
    Progress,
    /// Any other call of an installer, an installed system or a controller.
    Install,
    /// Logs that a step gathered.
    Logs,
    /// A person looks at the host.
    Watch,
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Response {
        status: u16,
        body: Vec<u8>,
    },
    /// No answer came; the hub may or may not have seen the request.
    Lost,
}

impl Outcome {
    pub(crate) fn ok(&self) -> bool {
        match self {
            Self::Response { status, .. } => (200..300).contains(status),
            Self::Lost => false,
        }
    }

    /// Agents repeat a call after these, and only these.
    pub(crate) fn transient(&self) -> bool {
        match self {
            Self::Response { status, .. } => matches!(status, 503 | 504),
            Self::Lost => true,
        }
    }
}

impl Request {
    /// The headers of the request, besides those of HTTP itself.
    pub fn headers(&self, token: &str) -> Vec<(&'static str, String)> {
        let mut headers = vec![
            ("x-secret-key", token.to_owned()),
            ("x-request-id", self.request_id.to_string()),
        ];
        if let Some(version) = &self.agent_version {
            headers.push(("discovery_agent_version", version.to_string()));
        }
        headers
    }

    /// The same request for a hub in this process, and the tag for its outcome.
    pub fn into_http(self, token: &str) -> Result<(http::Request<Vec<u8>>, Tag), http::Error> {
        let headers = self.headers(token);
        let mut request = http::Request::builder().method(self.method).uri(self.path);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if !self.body.is_empty() {
            request = request.header(CONTENT_TYPE, self.content_type);
        }
        Ok((request.body(self.body)?, self.tag))
    }
}
