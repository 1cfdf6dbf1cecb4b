//! A hub as people run it: the built binary, on a free port of loopback, stopped with its guard.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use crate::{process, project, wait};

/// A debug build on a busy machine opens its database in a few seconds.
const START_LIMIT: Duration = Duration::from_secs(60);
/// Short against the hundredth of a second that a start takes: it is measured.
const STARTING: Duration = Duration::from_millis(2);

/// How a hub is started.
pub struct Options<'a> {
    pub binary: &'a Path,
    /// `127.0.0.1:0` lets the system choose a port.
    pub listen: &'a str,
    pub data_dir: &'a Path,
    /// SQLite in the data directory when absent.
    pub database: Option<&'a str>,
    /// Whether the hub should end when this process dies.
    pub ends_with_us: bool,
}

/// A hub that answers.
pub struct Hub {
    pub url: String,
    /// Where its log goes.
    pub log: PathBuf,
    service: process::Service,
}

impl Hub {
    pub fn start(options: &Options<'_>) -> Result<Self> {
        Self::start_with(options, &[])
    }

    /// The same with further arguments of `muster serve`.
    pub fn start_with(options: &Options<'_>, more: &[OsString]) -> Result<Self> {
        fs::create_dir_all(options.data_dir)
            .with_context(|| format!("creating {}", options.data_dir.display()))?;
        let said = options.data_dir.join("hub.out");
        let log = options.data_dir.join("hub.log");
        let mut command = command(options);
        command.args(more);
        command.stdout(File::create(&said)?).stderr(File::create(&log)?);
        let mut service = process::Service::start("the hub", &mut command, Signal::TERM)?;
        let url = wait::until_every(STARTING, "the hub's line with its URL", START_LIMIT, || {
            let text = fs::read_to_string(&said).unwrap_or_default();
            if let Some(url) = text.split_inclusive('\n').find_map(url_in) {
                return Ok(Some(url.to_owned()));
            }
            match service.ended()? {
                Some(status) => bail!("the hub ended at once ({status}):\n{}", tail(&log)),
                None => Ok(None),
            }
        })?;
        wait::until_every(STARTING, "the hub to be ready", START_LIMIT, || {
            Ok(is_ready(&url).then_some(()))
        })
        .with_context(|| tail(&log))?;
        Ok(Self { url, log, service })
    }

    pub fn pid(&self) -> u32 {
        self.service.pid()
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.service.ended()
    }

    /// Asks the hub to drain and end; anything but a clean exit is an error.
    pub fn stop(mut self) -> Result<()> {
        let status = self.service.stop()?;
        if !status.success() {
            bail!("the hub did not end cleanly ({status}):\n{}", tail(&self.log));
        }
        Ok(())
    }

    /// Ends the hub as a power failure would, and waits until it is gone.
    pub fn kill(&mut self) -> Result<()> {
        process::signal(self.service.pid(), Signal::KILL)?;
        wait::until("the hub's sudden end", START_LIMIT, || self.service.ended()).map(drop)
    }

    /// Lets the hub run on; gives its process id.
    pub fn detach(self) -> u32 {
        self.service.detach()
    }
}

/// Long enough for a busy machine, short enough that a hanging hub is noticed.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// Whether `/ready` answers with a success: one line of HTTP is read, which is worth no HTTP client.
fn is_ready(url: &str) -> bool {
    let address = url.strip_prefix("http://").unwrap_or(url);
    let status = || -> std::io::Result<String> {
        let mut hub = TcpStream::connect(address)?;
        hub.set_read_timeout(Some(ANSWER_LIMIT))?;
        let question = format!("GET /ready HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        hub.write_all(question.as_bytes())?;
        let mut line = String::new();
        BufReader::new(hub).read_line(&mut line)?;
        Ok(line)
    };
    status().is_ok_and(|line| line.split(' ').nth(1).is_some_and(|code| code.starts_with('2')))
}

fn command(options: &Options<'_>) -> Command {
    let mut command = match options.ends_with_us {
        true => process::ending_with_us(options.binary),
        false => Command::new(options.binary),
    };
    command
        .args(["serve", "--listen", options.listen, "--data-dir"])
        .arg(options.data_dir);
    if let Some(database) = options.database {
        command.args(["--database", database]);
    }
    project::without_proxy(&mut command);
    command
}

/// The URL in a complete line of the hub's output.
fn url_in(line: &str) -> Option<&str> {
    let line = line.strip_suffix('\n')?;
    let word = line
        .split_whitespace()
        .find(|word| word.starts_with("http://") || word.starts_with("https://"))?;
    Some(word.trim_end_matches(['.', ',', ';', ')', '/']))
}

/// The last lines of a log, for error messages.
pub fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.len().saturating_sub(30);
    format!("the end of {}:\n{}", log.display(), lines[last..].join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_is_read_from_whatever_the_line_says_around_it() {
        let line = "Muster is ready on http://127.0.0.1:8090\n";
        assert_eq!(url_in(line), Some("http://127.0.0.1:8090"));
        assert_eq!(
            url_in("http://127.0.0.1:1/, data in x\n"),
            Some("http://127.0.0.1:1")
        );
    }

    #[test]
    fn half_a_line_is_not_believed() {
        assert_eq!(url_in("Muster is ready on http://127.0.0.1:80"), None);
        assert_eq!(url_in("starting\n"), None);
    }

    #[test]
    fn only_a_server_that_answers_with_a_success_is_ready() {
        let answers = |status: &'static str| {
            let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let url = format!("http://{}", server.local_addr().unwrap());
            let served = std::thread::spawn(move || {
                let (hub, _) = server.accept().unwrap();
                let mut asked = String::new();
                BufReader::new(&hub).read_line(&mut asked).unwrap();
                let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
                (&hub).write_all(answer.as_bytes()).unwrap();
                asked
            });
            let ready = is_ready(&url);
            assert_eq!(served.join().unwrap(), "GET /ready HTTP/1.1\r\n");
            (ready, url)
        };
        let (ready, gone) = answers("200 OK");
        assert!(ready);
        assert!(!answers("503 Service Unavailable").0);
        assert!(!is_ready(&gone), "nobody listens any more");
    }

    #[test]
    fn a_program_that_ends_instead_of_serving_is_an_error_with_its_log() {
        let home = tempfile::tempdir().unwrap();
        let options = Options {
            binary: Path::new("/bin/false"),
            listen: "127.0.0.1:0",
            data_dir: home.path(),
            database: None,
            ends_with_us: true,
        };
        let error = Hub::start(&options).err().expect("false is not a hub");
        assert!(error.to_string().contains("ended at once"), "{error:#}");
    }
}
