//! The logs that machines and controllers send: a form with one very small archive.

use super::{Ask, Ids};
use http::Method;
use muster_contract::v2::install::{LogsState, ReportLogsProgress};

/// One part of sending logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogsPart {
    Begin,
    Upload,
    End,
}

impl LogsPart {
    pub const ALL: [Self; 3] = [Self::Begin, Self::Upload, Self::End];
}

const CONTENT_TYPE: &str = "multipart/form-data; boundary=simulated-logs";
const HEAD: &[u8] = b"--simulated-logs\r\n\
    Content-Disposition: form-data; name=\"upfile\"; filename=\"logs.tar.gz\"\r\n\
    Content-Type: application/gzip\r\n\r\n";
const TAIL: &[u8] = b"\r\n--simulated-logs--\r\n";
/// A gzipped tar with one file of ten bytes, `simulated.log`.
const ARCHIVE: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x2b\xce\xcc\x2d\xcd\x49\x2c\x49\x4d\xd1\xcb\xc9\x4f\
    \x67\xa0\x0d\x30\x00\x02\x33\x13\x13\x30\x0d\x04\xe8\xb4\x81\x81\xa1\x11\x82\x0d\x12\x37\x34\x30\x31\x36\x60\x50\
    \x30\x60\xa0\x03\x28\x2d\x2e\x49\x2c\x02\x5a\xcf\x30\x32\x41\x31\x2c\xfe\xb9\x18\x46\xc1\x28\x18\x05\xa3\x60\x14\
    \x8c\x20\x00\x00\x5d\x7f\x57\x31\x00\x08\x00\x00";

/// The logs of a host.
pub fn of_host(ids: &Ids, part: LogsPart) -> Ask {
    let query = format!(
        "logs_type=host&host_id={}&infra_env_id={}",
        ids.host, ids.infra_env
    );
    match part {
        LogsPart::Begin => progress(ids.host_path(), LogsState::Collecting),
        LogsPart::Upload => upload(ids, &query),
        LogsPart::End => progress(ids.host_path(), LogsState::Completed),
    }
}

/// The logs of a cluster's controller.
pub fn of_controller(ids: &Ids, part: LogsPart) -> Ask {
    match part {
        LogsPart::Begin => progress(ids.cluster_path(), LogsState::Requested),
        LogsPart::Upload => upload(ids, "logs_type=controller"),
        LogsPart::End => progress(ids.cluster_path(), LogsState::Completed),
    }
}

fn progress(of: String, logs_state: LogsState) -> Ask {
    Ask::send(
        Method::PUT,
        format!("{of}/logs-progress"),
        &ReportLogsProgress { logs_state },
    )
}

fn upload(ids: &Ids, query: &str) -> Ask {
    Ask {
        method: Method::POST,
        body: [HEAD, ARCHIVE, TAIL].concat(),
        content_type: CONTENT_TYPE,
        ..Ask::get(format!("{}/logs?{query}", ids.cluster_path()))
    }
}
