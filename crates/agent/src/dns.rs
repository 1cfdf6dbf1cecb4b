//! A small resolver: hosts file, then the servers of resolv.conf. It works in static binaries and tells aliases.

use hickory_proto::op::{Header, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{Name, RData, RecordType};
use hickory_proto::serialize::binary::{BinDecodable, BinDecoder};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Servers that are there answer much faster; those that are not should not hold up a check for long.
const PATIENCE: Duration = Duration::from_secs(3);
const TRIES: usize = 2;

/// What a name stands for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lookup {
    pub v4: Vec<Ipv4Addr>,
    pub v6: Vec<Ipv6Addr>,
    pub aliases: Vec<String>,
}

impl Lookup {
    pub fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }

    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        let v4 = self.v4.iter().copied().map(IpAddr::V4);
        v4.chain(self.v6.iter().copied().map(IpAddr::V6))
    }
}

#[derive(Debug, Clone)]
pub struct Resolver {
    root: PathBuf,
    port: u16,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Config {
    servers: Vec<IpAddr>,
    search: Vec<String>,
}

impl Resolver {
    pub fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            port: 53,
        }
    }

    pub fn lookup(&self, name: &str) -> Lookup {
        let bare = name.trim_end_matches('.');
        if let Ok(ip) = bare.parse::<IpAddr>() {
            return one(ip);
        }
        let hosts = std::fs::read_to_string(self.root.join("etc/hosts")).unwrap_or_default();
        let found = from_hosts(&hosts, bare);
        if !found.is_empty() {
            return found;
        }
        let config =
            parse_config(&std::fs::read_to_string(self.root.join("etc/resolv.conf")).unwrap_or_default());
        candidates(name, &config.search)
            .iter()
            .map(|name| self.ask_all(&config.servers, name))
            .find(|found| !found.is_empty())
            .unwrap_or_default()
    }

    fn ask_all(&self, servers: &[IpAddr], name: &str) -> Lookup {
        let mut found = Lookup::default();
        for kind in [RecordType::A, RecordType::AAAA] {
            for _ in 0..TRIES {
                // An answer that says "no such name" is an answer too.
                let answered = servers
                    .iter()
                    .any(|server| self.ask(*server, name, kind, &mut found).is_ok());
                if answered || servers.is_empty() {
                    break;
                }
            }
        }
        found
    }

    fn ask(&self, server: IpAddr, name: &str, kind: RecordType, into: &mut Lookup) -> io::Result<()> {
        let id = (crate::clock::chance() * 65535.0) as u16;
        let question = question(id, name, kind)?;
        let server = SocketAddr::new(server, self.port);
        let mut answer = over_udp(server, &question, id)?;
        let truncated = answer.get(2).is_some_and(|flags| flags & 2 != 0);
        if truncated {
            answer = over_tcp(server, &question)?;
        }
        read_answer(&answer, into).ok_or_else(|| io::Error::other("cannot read the name server's answer"))
    }
}

fn one(ip: IpAddr) -> Lookup {
    match ip {
        IpAddr::V4(ip) => Lookup {
            v4: vec![ip],
            ..Lookup::default()
        },
        IpAddr::V6(ip) => Lookup {
            v6: vec![ip],
            ..Lookup::default()
        },
    }
}

fn from_hosts(text: &str, name: &str) -> Lookup {
    let mut found = Lookup::default();
    for line in text.lines() {
        let mut words = line
            .split('#')
            .next()
            .unwrap_or_default()
            .split_ascii_whitespace();
        let Some(ip) = words.next().and_then(|word| word.parse::<IpAddr>().ok()) else {
            continue;
        };
        if words.any(|word| word.eq_ignore_ascii_case(name)) {
            match ip {
                IpAddr::V4(ip) => found.v4.push(ip),
                IpAddr::V6(ip) => found.v6.push(ip),
            }
        }
    }
    found
}

fn parse_config(text: &str) -> Config {
    let mut config = Config::default();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        match words.next() {
            Some("nameserver") => config
                .servers
                .extend(words.next().and_then(|word| word.parse::<IpAddr>().ok())),
            Some("search" | "domain") => config.search = words.map(str::to_owned).collect(),
            _ => {}
        }
    }
    config
}

/// A name with a dot is tried as it is first; a bare one gets the search domains.
fn candidates(name: &str, search: &[String]) -> Vec<String> {
    if name.ends_with('.') {
        return vec![name.to_owned()];
    }
    let mut names = vec![format!("{name}.")];
    names.extend(
        search
            .iter()
            .map(|domain| format!("{name}.{}.", domain.trim_end_matches('.'))),
    );
    if !name.contains('.') && names.len() > 1 {
        names.rotate_left(1);
    }
    names
}

fn question(id: u16, name: &str, kind: RecordType) -> io::Result<Vec<u8>> {
    // As bytes: what is not ASCII is sent as it is.
    let labels = name.trim_end_matches('.').split('.').map(str::as_bytes);
    let name = Name::from_labels(labels)
        .ok()
        .filter(|name| !name.is_root())
        .ok_or_else(|| io::Error::other("not a domain name"))?;
    let mut message = Message::new(id, MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = true;
    message.add_query(Query::query(name, kind));
    message.to_vec().map_err(io::Error::other)
}

fn over_udp(server: SocketAddr, question: &[u8], id: u16) -> io::Result<Vec<u8>> {
    let any: IpAddr = if server.is_ipv4() {
        Ipv4Addr::UNSPECIFIED.into()
    } else {
        Ipv6Addr::UNSPECIFIED.into()
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.send(question)?;
    let mut buffer = vec![0; 4096];
    loop {
        let length = socket.recv(&mut buffer)?;
        // Answers to earlier questions may still come.
        if buffer[..length].starts_with(&id.to_be_bytes()) {
            buffer.truncate(length);
            return Ok(buffer);
        }
    }
}

fn over_tcp(server: SocketAddr, question: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&server, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let length = u16::try_from(question.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes(), question].concat())?;
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut answer)?;
    Ok(answer)
}

/// Reads the records of an answer; nothing when it is not a well-formed one. What comes after them is of no interest.
fn read_answer(bytes: &[u8], into: &mut Lookup) -> Option<()> {
    let mut decoder = BinDecoder::new(bytes);
    let header = Header::read(&mut decoder).ok()?;
    match header.metadata.response_code {
        ResponseCode::NoError | ResponseCode::NXDomain => {}
        // This server cannot tell.
        _ => return None,
    }
    let count = |count: u16| usize::from(count);
    Message::read_queries(&mut decoder, count(header.counts.queries)).ok()?;
    let (records, _, _) =
        Message::read_records(&mut decoder, count(header.counts.answers), false, OpCode::Query).ok()?;
    for record in records {
        match record.data {
            RData::A(ip) => into.v4.push(ip.0),
            RData::AAAA(ip) => into.v6.push(ip.0),
            RData::CNAME(name) => {
                let alias = name.0.to_ascii();
                if !into.aliases.contains(&alias) {
                    into.aliases.push(alias);
                }
            }
            _ => {}
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_with_an_alias_are_read_whole() {
        let mut answer = question(7, "api.example.com", RecordType::A).unwrap();
        answer[7] = 2;
        // api.example.com is an alias of lb.example.com, which is 192.0.2.9.
        answer.extend_from_slice(&[0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 60, 0, 5, 2, b'l', b'b', 0xc0, 16]);
        answer.extend_from_slice(&[0xc0, 45, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 9]);
        let mut found = Lookup::default();
        read_answer(&answer, &mut found).unwrap();
        assert_eq!(found.v4, [Ipv4Addr::new(192, 0, 2, 9)]);
        assert_eq!(found.aliases, ["lb.example.com."]);
    }

    #[test]
    fn broken_answers_are_refused() {
        for broken in [&[][..], &[0; 11], &[0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xc0, 12]] {
            assert_eq!(read_answer(broken, &mut Lookup::default()), None, "{broken:?}");
        }
    }

    #[test]
    fn names_are_tried_with_the_search_domains() {
        let search = ["lab.example".to_owned()];
        assert_eq!(candidates("hub", &search), ["hub.lab.example.", "hub."]);
        assert_eq!(candidates("hub.x", &search), ["hub.x.", "hub.x.lab.example."]);
        assert_eq!(candidates("hub.x.", &search), ["hub.x."]);
    }

    #[test]
    fn a_server_is_asked_for_both_families() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 512];
            for _ in 0..2 {
                let (length, from) = server.recv_from(&mut buffer).unwrap();
                let mut answer = buffer[..length].to_vec();
                // The kind stands before the class, and that is the end.
                let kind = answer[length - 3];
                answer[2] = 0x81;
                if kind == 1 {
                    answer[7] = 1;
                    answer.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1]);
                } else {
                    answer[3] = 3;
                }
                server.send_to(&answer, from).unwrap();
            }
        });
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("etc")).unwrap();
        std::fs::write(
            root.path().join("etc/resolv.conf"),
            "# mine\nnameserver 127.0.0.1\n",
        )
        .unwrap();
        let resolver = Resolver {
            root: root.path().to_owned(),
            port,
        };
        assert_eq!(
            resolver.lookup("hub.example.com").v4,
            [Ipv4Addr::new(192, 0, 2, 1)]
        );
        thread.join().unwrap();
    }

    #[test]
    fn the_hosts_file_comes_first() {
        let text = "127.0.0.1 localhost\n192.0.2.7 Hub.example.com hub # mine\n2001:db8::7 hub\n";
        let found = from_hosts(text, "HUB");
        assert_eq!(
            found.addresses().map(|ip| ip.to_string()).collect::<Vec<_>>(),
            ["192.0.2.7", "2001:db8::7"]
        );
    }
}
