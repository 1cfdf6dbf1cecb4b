//! The network of an image against a real DHCP server: dnsmasq at the other end of a cable, in a network of its own.
//!
//! dnsmasq lets a lease rest for a minute at least, so a small server of our own shows what comes after.

use crate::cable::{leave_network, skipped};
use dhcproto::v4::{DhcpOption, Flags, Message, MessageType, Opcode};
use dhcproto::{Decodable as _, Encodable as _};
use muster_agent::collect::Machine;
use muster_agent::init::network::Network;
use muster_agent::sys::{broadcast_socket, interface_addresses, netlink};
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Addresses of IPv6 are tested for seconds before they are used, on either side.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);

/// Ends with the test.
struct Server {
    child: Child,
    said: Receiver<String>,
    heard: Vec<String>,
}

impl Server {
    /// It serves the network that this thread is in.
    fn start(dir: &Path, args: &[&str]) -> Self {
        let mut command = Command::new("dnsmasq");
        command.args([
            "--conf-file=/dev/null",
            "--keep-in-foreground",
            "--user=root",
            "--port=0",
            "--no-ping",
        ]);
        command.args(["--interface=veth0", "--except-interface=lo", "--bind-interfaces"]);
        command.args(["--log-facility=-", "--log-dhcp", "--pid-file="]);
        command.arg(format!("--dhcp-leasefile={}", dir.join("leases").display()));
        command.args(args).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (say, said) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if say.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            said,
            heard: Vec::new(),
        }
    }

    /// Waits until it has said this so many times.
    fn says(&mut self, words: &str, times: usize) {
        let until = Instant::now() + PATIENCE;
        while self.heard.iter().filter(|line| line.contains(words)).count() < times {
            let left = until.saturating_duration_since(Instant::now());
            match self.said.recv_timeout(left) {
                Ok(line) => self.heard.push(line),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("{words} was not said {times} times:\n{}", self.heard.join("\n"))
                }
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A machine with the card `eth0`, and a server at the other end of its cable.
struct Site<S> {
    machine: Machine,
    network: Network,
    server: S,
    _root: tempfile::TempDir,
}

fn site(args: &'static [&'static str], test: impl FnOnce(Site<Server>) + Send + 'static) {
    if Command::new("dnsmasq").arg("--version").output().is_err() {
        return skipped("dnsmasq is not installed (Debian's package dnsmasq-base)");
    }
    site_with(|dir| Server::start(dir, args), test);
}

fn site_with<S: Send + 'static>(
    serve: impl FnOnce(&Path) -> S + Send + 'static,
    test: impl FnOnce(Site<S>) + Send + 'static,
) {
    let here = std::thread::spawn(move || {
        if !leave_network() {
            return skipped("this needs root");
        }
        netlink::link_up("lo").unwrap();
        netlink::add_link("eth0", "veth").unwrap();
        netlink::set_mac("eth0", [2, 0, 0, 0, 0, 1]).unwrap();
        let root = tempfile::tempdir().unwrap();
        let files = [
            ("sys/class/net/eth0/address", "02:00:00:00:00:01"),
            ("sys/class/net/eth0/carrier", "1"),
            ("sys/class/net/eth0/device/vendor", "0x1af4"),
            ("etc/hostname", "a-machine-with-a-name"),
        ];
        for (path, content) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let server = at_the_other_end(root.path().to_owned(), serve);
        let machine = Machine::at(root.path());
        let mut network = Network::new(&machine);
        network.attend();
        test(Site {
            machine,
            network,
            server,
            _root: root,
        });
    });
    here.join().unwrap();
}

fn at_the_other_end<S: Send + 'static>(dir: PathBuf, serve: impl FnOnce(&Path) -> S + Send + 'static) -> S {
    let (show, shown): (Sender<File>, _) = channel();
    let (plug, plugged) = channel();
    let there = std::thread::spawn(move || {
        assert!(leave_network());
        show.send(File::open("/proc/thread-self/ns/net").unwrap())
            .unwrap();
        plugged.recv_timeout(PATIENCE).unwrap();
        netlink::link_up("veth0").unwrap();
        for (ip, prefix) in [("192.0.2.1", 24), ("2001:db8::1", 64)] {
            netlink::add_address("veth0", ip.parse().unwrap(), prefix).unwrap();
        }
        serve(&dir)
    });
    let namespace = shown.recv_timeout(PATIENCE).unwrap();
    netlink::set_namespace("veth0", namespace.as_fd()).unwrap();
    plug.send(()).unwrap();
    there.join().unwrap()
}

impl<S> Site<S> {
    fn eventually(&self, what: &str, mut is_so: impl FnMut(&Machine) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !is_so(&self.machine) {
            assert!(
                Instant::now() < until,
                "{what} does not happen\n{:?}\n{}",
                addresses(),
                self.machine.text("etc/resolv.conf")
            );
            std::thread::park_timeout(LOOK);
        }
    }
}

fn addresses() -> Vec<(IpAddr, u8)> {
    let all = interface_addresses().into_iter();
    all.filter(|at| at.interface == "eth0")
        .map(|at| (at.address, at.prefix))
        .collect()
}

/// As the kernel writes them: hexadecimal, from right to left.
fn routes() -> Vec<String> {
    let table = std::fs::read_to_string("/proc/thread-self/net/route").unwrap();
    let lines = table.lines().skip(1);
    lines
        .map(|line| {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            format!("{}/{} by {}", words[1], words[7], words[2])
        })
        .collect()
}

#[test]
fn a_lease_is_used_whole() {
    site(
        &[
            "--dhcp-range=192.0.2.100,192.0.2.100,255.255.255.0,2m",
            "--dhcp-option=option:router,192.0.2.1",
            "--dhcp-option=option:mtu,1400",
            "--dhcp-option=option:dns-server,192.0.2.53",
            "--dhcp-option=option:domain-name,lab.example",
            "--dhcp-option=option:domain-search,lab.example,example",
            "--dhcp-option=option:ntp-server,192.0.2.123",
        ],
        |mut site| {
            site.network.wait(PATIENCE);
            let ip: IpAddr = "192.0.2.100".parse().unwrap();
            assert!(addresses().contains(&(ip, 24)), "{:?}", addresses());
            assert!(
                routes().contains(&"00000000/00000000 by 010200C0".to_owned()),
                "{:?}",
                routes()
            );
            assert_eq!(
                site.machine.text("etc/resolv.conf"),
                "search lab.example example\nnameserver 192.0.2.53"
            );
            assert_eq!(
                site.machine.text("run/chrony-dhcp/eth0-dhcp.sources"),
                "server 192.0.2.123 iburst"
            );
            let mtu = std::fs::read_to_string("/proc/sys/net/ipv6/conf/eth0/mtu").unwrap();
            assert_eq!(mtu.trim(), "1400");
            site.server.says("DHCPACK(veth0) 192.0.2.100", 1);
        },
    );
}

const LEASED: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 100);
const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// Offers the address to who looks for one, answers the request for it the way it is told, and returns that.
fn lease(socket: &UdpSocket, last_word: MessageType) -> Message {
    loop {
        let mut packet = [0; 1500];
        let length = socket.recv(&mut packet).unwrap();
        let question = Message::from_bytes(&packet[..length]).unwrap();
        let is_request = question.opts().has_msg_type(MessageType::Request);
        let mut answer = question.clone();
        answer.set_opcode(Opcode::BootReply).set_yiaddr(LEASED);
        let options = answer.opts_mut();
        options.clear();
        options.insert(DhcpOption::MessageType(if is_request {
            last_word
        } else {
            MessageType::Offer
        }));
        options.insert(DhcpOption::ServerIdentifier(SERVER));
        options.insert(DhcpOption::AddressLeaseTime(3600));
        options.insert(DhcpOption::Renewal(1));
        options.insert(DhcpOption::Router(vec![SERVER]));
        let to = if question.flags().broadcast() {
            Ipv4Addr::BROADCAST
        } else {
            question.ciaddr()
        };
        socket.send_to(&answer.to_vec().unwrap(), (to, 68)).unwrap();
        if is_request {
            return question;
        }
    }
}

#[test]
fn a_lease_is_renewed_at_its_server_and_given_up_when_that_refuses() {
    let serve = |_: &Path| {
        let socket = broadcast_socket("veth0", 67).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    };
    site_with(serve, |site| {
        let ip = (IpAddr::V4(LEASED), 24);
        let by_server = "00000000/00000000 by 010200C0".to_owned();
        let request = lease(&site.server, MessageType::Ack);
        assert!(request.ciaddr().is_unspecified() && request.flags().broadcast());
        let renewal = lease(&site.server, MessageType::Ack);
        assert_eq!(renewal.ciaddr(), LEASED);
        assert_eq!(
            renewal.flags(),
            Flags::default(),
            "it can hear what is meant for it"
        );
        assert!(
            addresses().contains(&ip) && routes().contains(&by_server),
            "{:?}",
            addresses()
        );
        let renewal = lease(&site.server, MessageType::Nak);
        assert_eq!(renewal.ciaddr(), LEASED);
        site.eventually("the address goes", |_| !addresses().contains(&ip));
        assert!(!routes().contains(&by_server), "{:?}", routes());
        let request = lease(&site.server, MessageType::Ack);
        assert!(request.ciaddr().is_unspecified());
        site.eventually("the address comes back", |_| addresses().contains(&ip));
    });
}

#[test]
fn classless_routes_are_set() {
    site(
        &[
            "--dhcp-range=192.0.2.100,192.0.2.100,255.255.255.0,2m",
            "--dhcp-option=option:router,192.0.2.1",
            "--dhcp-option=121,198.51.100.0/24,192.0.2.9,0.0.0.0/0,192.0.2.8",
        ],
        |site| {
            site.network.wait(PATIENCE);
            let found = routes();
            for expected in ["006433C6/00FFFFFF by 090200C0", "00000000/00000000 by 080200C0"] {
                assert!(found.contains(&expected.to_owned()), "{expected}: {found:?}");
            }
            let by_router = "00000000/00000000 by 010200C0".to_owned();
            assert!(!found.contains(&by_router), "{found:?}");
        },
    );
}

#[test]
fn a_network_of_ipv6_alone_gives_an_address_and_names() {
    site(
        &[
            "--enable-ra",
            "--dhcp-range=2001:db8::100,2001:db8::100,64,2m",
            "--dhcp-option=option6:dns-server,[2001:db8::53]",
            "--dhcp-option=option6:domain-search,six.example",
            "--dhcp-option=option6:ntp-server,[2001:db8::123]",
        ],
        |mut site| {
            site.server.says("DHCPREPLY(veth0) 2001:db8::100", 1);
            let ip: IpAddr = "2001:db8::100".parse().unwrap();
            site.eventually("the address", |_| addresses().contains(&(ip, 128)));
            site.eventually("names", |machine| {
                machine.text("etc/resolv.conf") == "search six.example\nnameserver 2001:db8::53"
            });
            site.eventually("time servers", |machine| {
                machine.text("run/chrony-dhcp/eth0-dhcp6.sources") == "server 2001:db8::123 iburst"
            });
            site.network.wait(PATIENCE);
            let routes = std::fs::read_to_string("/proc/thread-self/net/ipv6_route").unwrap();
            let by_router = |line: &&str| line.starts_with(&"0".repeat(32)) && line.ends_with("eth0");
            assert!(routes.lines().any(|line| by_router(&line)), "{routes}");
        },
    );
}

#[test]
fn where_machines_give_themselves_addresses_the_server_tells_the_rest() {
    site(
        &[
            "--enable-ra",
            "--dhcp-range=2001:db8::,ra-stateless",
            "--dhcp-option=option6:dns-server,[2001:db8::53]",
            "--dhcp-option=option6:ntp-server,[2001:db8::123]",
        ],
        |mut site| {
            site.server.says("DHCPINFORMATION-REQUEST(veth0)", 1);
            let own: IpAddr = "2001:db8::ff:fe00:1".parse().unwrap();
            site.eventually("an address of its own", |_| addresses().contains(&(own, 64)));
            site.eventually("names", |machine| {
                machine.text("etc/resolv.conf") == "nameserver 2001:db8::53"
            });
            site.eventually("time servers", |machine| {
                machine.text("run/chrony-dhcp/eth0-dhcp6.sources") == "server 2001:db8::123 iburst"
            });
        },
    );
}
