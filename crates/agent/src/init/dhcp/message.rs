//! DHCPv4 messages: what servers are asked, and what their answers give.

use crate::init::connection::Route;
use crate::sys::packet::Mac;
use dhcproto::v4::borrowed::{self, DhcpOption as RawOption};
use dhcproto::v4::{DhcpOption, Flags, Message, MessageType, OptionCode};
use dhcproto::{Decodable, Encodable};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// RFC 3442: who knows classless routes asks for them before routers. 249 is the same from Windows servers.
const WANTED: [OptionCode; 14] = [
    OptionCode::SubnetMask,
    OptionCode::ClasslessStaticRoute,
    OptionCode::Unknown(CLASSLESS_OF_WINDOWS),
    OptionCode::Router,
    OptionCode::DomainNameServer,
    OptionCode::Hostname,
    OptionCode::DomainName,
    OptionCode::InterfaceMtu,
    OptionCode::NtpServers,
    OptionCode::AddressLeaseTime,
    OptionCode::ServerIdentifier,
    OptionCode::Renewal,
    OptionCode::Rebinding,
    OptionCode::DomainSearch,
];
const CLASSLESS_OF_WINDOWS: u8 = 249;
/// What our buffer takes; without it servers leave out what is beyond 576 bytes.
pub const LARGEST: u16 = 1500;
/// RFC 1542: some relays drop what is shorter.
const SHORTEST: usize = 300;
/// Seconds; servers with tiny leases are not asked without pause.
const SHORTEST_LEASE: u32 = 30;
/// "For ever", as RFC 2131 writes it.
const INFINITE: u32 = u32::MAX;
/// RFC 791: every machine must take packets of 576 bytes. A smaller limit is a mistake.
const SMALLEST_MTU: u16 = 576;

/// An address for a while, and what comes with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub address: Ipv4Addr,
    pub mask: Ipv4Addr,
    /// In the order in which they can be set.
    pub routes: Vec<Route>,
    pub name_servers: Vec<Ipv4Addr>,
    pub search: Vec<String>,
    pub hostname: String,
    pub mtu: Option<u32>,
    pub time_servers: Vec<Ipv4Addr>,
    pub seconds: u32,
    /// T1 and T2, when the server sets them.
    pub renew_after: Option<u32>,
    pub rebind_after: Option<u32>,
    pub server: Ipv4Addr,
}

/// The moments of a lease, from its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    pub renew: Duration,
    pub rebind: Duration,
    pub end: Duration,
}

impl Lease {
    pub fn prefix(&self) -> u8 {
        u8::try_from(self.mask.to_bits().leading_ones()).unwrap_or(32)
    }

    /// Nothing when the lease lasts for ever.
    pub fn times(&self) -> Option<Times> {
        if self.seconds == INFINITE {
            return None;
        }
        let end = self.seconds.max(SHORTEST_LEASE);
        let rebind = self
            .rebind_after
            .filter(|rebind| (1..end).contains(rebind))
            .unwrap_or(end - end / 8);
        let renew = self
            .renew_after
            .filter(|renew| (1..rebind).contains(renew))
            .unwrap_or((end / 2).min(rebind));
        let seconds = |seconds: u32| Duration::from_secs(seconds.into());
        Some(Times {
            renew: seconds(renew),
            rebind: seconds(rebind),
            end: seconds(end),
        })
    }
}

/// What a client asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub id: u32,
    /// How long it has been trying.
    pub seconds: u16,
    pub kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Discover,
    /// Takes an offer.
    Select {
        address: Ipv4Addr,
        server: Ipv4Addr,
    },
    /// Asks the server of a lease, by unicast.
    Renew {
        address: Ipv4Addr,
        server: Ipv4Addr,
    },
    /// Asks any server, because that of the lease does not answer.
    Rebind {
        address: Ipv4Addr,
    },
}

impl Question {
    /// Where it goes.
    pub fn to(&self) -> Ipv4Addr {
        match self.kind {
            Kind::Renew { server, .. } => server,
            Kind::Discover | Kind::Select { .. } | Kind::Rebind { .. } => Ipv4Addr::BROADCAST,
        }
    }

    pub fn packet(&self, mac: Mac) -> anyhow::Result<Vec<u8>> {
        let mut message = Message::new_with_id(
            self.id,
            Ipv4Addr::UNSPECIFIED,
            Ipv4Addr::UNSPECIFIED,
            Ipv4Addr::UNSPECIFIED,
            Ipv4Addr::UNSPECIFIED,
            &mac,
        );
        message.set_secs(self.seconds);
        let mut kind = MessageType::Request;
        match self.kind {
            Kind::Discover => {
                kind = MessageType::Discover;
                // A card without an address hears broadcasts only.
                message.set_flags(Flags::default().set_broadcast());
            }
            Kind::Select { address, server } => {
                message.set_flags(Flags::default().set_broadcast());
                let options = message.opts_mut();
                options.insert(DhcpOption::RequestedIpAddress(address));
                options.insert(DhcpOption::ServerIdentifier(server));
            }
            Kind::Renew { address, .. } | Kind::Rebind { address } => {
                message.set_ciaddr(address);
            }
        }
        let own = [&[1][..], &mac[..]].concat();
        let options = message.opts_mut();
        options.insert(DhcpOption::MessageType(kind));
        options.insert(DhcpOption::ClientIdentifier(own));
        options.insert(DhcpOption::MaxMessageSize(LARGEST));
        options.insert(DhcpOption::ParameterRequestList(WANTED.to_vec()));
        let mut packet = message.to_vec()?;
        packet.resize(packet.len().max(SHORTEST), 0);
        Ok(packet)
    }
}

/// What a server says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub id: u32,
    pub said: Said,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    Offer(Lease),
    Ack(Lease),
    /// With who says so.
    Nak(Ipv4Addr),
}

/// Reads an answer to a card. Options are read one by one: one that is broken does not cost the others.
pub fn read(packet: &[u8], mac: Mac) -> Option<Answer> {
    let message = borrowed::Message::new(packet).ok()?;
    let is_ours = packet.first()? == &2 && packet.get(28..34)? == mac;
    if !is_ours {
        return None;
    }
    let mut found = Found::default();
    for option in message.opts() {
        found.take(option);
    }
    let server = found.server.unwrap_or(message.siaddr());
    let lease = |found: Found| {
        let address = message.yiaddr();
        (!address.is_unspecified()).then(|| found.lease(address, server))
    };
    let said = match found.kind? {
        MessageType::Offer => Said::Offer(lease(found)?),
        MessageType::Ack => Said::Ack(lease(found)?),
        MessageType::Nak => Said::Nak(server),
        _ => return None,
    };
    Some(Answer {
        id: message.xid(),
        said,
    })
}

/// The options of a message, as far as we look at them.
#[derive(Default)]
struct Found {
    kind: Option<MessageType>,
    server: Option<Ipv4Addr>,
    mask: Option<Ipv4Addr>,
    routers: Vec<Ipv4Addr>,
    classless: Option<Vec<Route>>,
    classless_of_windows: Option<Vec<Route>>,
    name_servers: Vec<Ipv4Addr>,
    domain: String,
    search: Vec<String>,
    hostname: String,
    mtu: Option<u16>,
    time_servers: Vec<Ipv4Addr>,
    seconds: Option<u32>,
    renew_after: Option<u32>,
    rebind_after: Option<u32>,
}

impl Found {
    fn take(&mut self, option: RawOption<'_>) {
        match option.code() {
            // Not every server writes what the decoder takes for text.
            OptionCode::Hostname => self.hostname = text(option.data()),
            OptionCode::DomainName => self.domain = text(option.data()),
            OptionCode::Unknown(CLASSLESS_OF_WINDOWS) => {
                self.classless_of_windows = as_classless(option.data()).map(|routes| classless(&routes));
            }
            code if WANTED.contains(&code) || code == OptionCode::MessageType => {
                if let Ok(option) = option.into_option() {
                    self.take_known(option);
                }
            }
            _ => {}
        }
    }

    fn take_known(&mut self, option: DhcpOption) {
        match option {
            DhcpOption::MessageType(kind) => self.kind = Some(kind),
            DhcpOption::ServerIdentifier(server) => self.server = Some(server),
            DhcpOption::SubnetMask(mask) => self.mask = Some(mask),
            DhcpOption::Router(routers) => self.routers = routers,
            DhcpOption::ClasslessStaticRoute(routes) => self.classless = Some(classless(&routes)),
            DhcpOption::DomainNameServer(servers) => self.name_servers = servers,
            DhcpOption::DomainSearch(names) => {
                self.search = names
                    .iter()
                    .map(|name| name.to_ascii().trim_end_matches('.').to_owned())
                    .filter(|name| !name.is_empty())
                    .collect();
            }
            DhcpOption::InterfaceMtu(mtu) => self.mtu = Some(mtu),
            DhcpOption::NtpServers(servers) => self.time_servers = servers,
            DhcpOption::AddressLeaseTime(seconds) => self.seconds = Some(seconds),
            DhcpOption::Renewal(seconds) => self.renew_after = Some(seconds),
            DhcpOption::Rebinding(seconds) => self.rebind_after = Some(seconds),
            _ => {}
        }
    }

    fn lease(self, address: Ipv4Addr, server: Ipv4Addr) -> Lease {
        let mask = self.mask.unwrap_or(Ipv4Addr::new(255, 255, 255, 0));
        let told = self.classless.or(self.classless_of_windows).unwrap_or_else(|| {
            let everything = |router: &Ipv4Addr| Route {
                to: Ipv4Addr::UNSPECIFIED.into(),
                prefix: 0,
                gateway: Some((*router).into()),
            };
            self.routers.first().map(everything).into_iter().collect()
        });
        let mut search = self.search;
        for domain in self.domain.split_ascii_whitespace() {
            if !search.iter().any(|name| name == domain) {
                search.push(domain.to_owned());
            }
        }
        Lease {
            address,
            mask,
            routes: reachable(address, mask, told),
            name_servers: self.name_servers,
            search,
            hostname: self.hostname,
            mtu: self.mtu.filter(|mtu| *mtu >= SMALLEST_MTU).map(u32::from),
            time_servers: self.time_servers,
            seconds: self.seconds.unwrap_or(3600),
            renew_after: self.renew_after,
            rebind_after: self.rebind_after,
            server,
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_matches('\0').to_owned()
}

type Classless = Vec<(ipnet::Ipv4Net, Ipv4Addr)>;

/// The decoder knows the form under its own number only.
fn as_classless(data: &[u8]) -> Option<Classless> {
    let length = u8::try_from(data.len()).ok()?;
    let option = [&[u8::from(OptionCode::ClasslessStaticRoute), length][..], data].concat();
    match DhcpOption::from_bytes(&option).ok()? {
        DhcpOption::ClasslessStaticRoute(routes) => Some(routes),
        _ => None,
    }
}

/// A route by 0.0.0.0 is one to machines on the link itself.
fn classless(routes: &[(ipnet::Ipv4Net, Ipv4Addr)]) -> Vec<Route> {
    let route = |(to, gateway): &(ipnet::Ipv4Net, Ipv4Addr)| Route {
        to: to.network().into(),
        prefix: to.prefix_len(),
        gateway: (!gateway.is_unspecified()).then_some(IpAddr::V4(*gateway)),
    };
    routes.iter().map(route).collect()
}

/// The kernel takes a route only when it can reach the gateway: what is on the link comes first, and a gateway outside
/// of our network is announced to be on the link.
fn reachable(address: Ipv4Addr, mask: Ipv4Addr, routes: Vec<Route>) -> Vec<Route> {
    let (mut near, mut far): (Vec<Route>, Vec<Route>) =
        routes.into_iter().partition(|route| route.gateway.is_none());
    let network = |ip: Ipv4Addr| ip.to_bits() & mask.to_bits();
    for gateway in far.iter().filter_map(|route| route.gateway) {
        let IpAddr::V4(ip) = gateway else { continue };
        let is_near = network(ip) == network(address) || near.iter().any(|route| covers(route, ip));
        if !is_near {
            near.push(Route {
                to: gateway,
                prefix: 32,
                gateway: None,
            });
        }
    }
    near.append(&mut far);
    near
}

fn covers(route: &Route, ip: Ipv4Addr) -> bool {
    match route.to {
        IpAddr::V4(to) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(route.prefix)).unwrap_or(0);
            to.to_bits() & mask == ip.to_bits() & mask
        }
        IpAddr::V6(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: Mac = [0x52, 0x54, 0, 0, 0, 1];

    /// An answer with these options, as bytes.
    fn answer(options: &[&[u8]]) -> Vec<u8> {
        let mut packet = vec![0; 240];
        packet[..3].copy_from_slice(&[2, 1, 6]);
        packet[4..8].copy_from_slice(&7_u32.to_be_bytes());
        packet[16..20].copy_from_slice(&[10, 0, 2, 15]);
        packet[28..34].copy_from_slice(&MAC);
        packet[236..240].copy_from_slice(&[99, 130, 83, 99]);
        packet.extend(options.concat());
        packet.push(255);
        packet
    }

    const OFFER: &[u8] = &[53, 1, 2];

    fn offered(options: &[&[u8]]) -> Lease {
        let mut all = vec![OFFER, &[54, 4, 10, 0, 2, 2]];
        all.extend(options);
        match read(&answer(&all), MAC).unwrap().said {
            Said::Offer(lease) => lease,
            other => panic!("{other:?}"),
        }
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn route(to: &str, prefix: u8, gateway: Option<&str>) -> Route {
        Route {
            to: ip(to),
            prefix,
            gateway: gateway.map(ip),
        }
    }

    #[test]
    fn an_offer_is_read_whole() {
        let packet = answer(&[
            OFFER,
            &[
                0, 1, 4, 255, 255, 255, 0, 3, 4, 10, 0, 2, 2, 6, 8, 10, 0, 2, 3, 10, 0, 2, 4,
            ],
            &[
                12, 3, b'v', b'm', b'1', 51, 4, 0, 1, 0x51, 0x80, 54, 4, 10, 0, 2, 2,
            ],
            &[
                26, 2, 35, 40, 42, 4, 10, 0, 2, 5, 58, 4, 0, 0, 0, 60, 59, 4, 0, 0, 0, 90,
            ],
            &[15, 5, b'a', b'.', b'b', b'.', b'c'],
            &[119, 8, 1, b'x', 1, b'b', 1, b'c', 0, 0],
        ]);
        let Answer { id, said } = read(&packet, MAC).unwrap();
        assert_eq!(id, 7);
        let Said::Offer(lease) = said else {
            panic!("{said:?}")
        };
        assert_eq!(lease.address, Ipv4Addr::new(10, 0, 2, 15));
        assert_eq!(lease.routes, [route("0.0.0.0", 0, Some("10.0.2.2"))]);
        assert_eq!(lease.name_servers.len(), 2);
        assert_eq!((lease.hostname.as_str(), lease.seconds), ("vm1", 86_400));
        assert_eq!((lease.mtu, lease.prefix()), (Some(9000), 24));
        assert_eq!(lease.time_servers, [Ipv4Addr::new(10, 0, 2, 5)]);
        assert_eq!((lease.renew_after, lease.rebind_after), (Some(60), Some(90)));
        assert_eq!(lease.search, ["x.b.c", "a.b.c"]);
        assert_eq!(lease.server, Ipv4Addr::new(10, 0, 2, 2));
    }

    #[test]
    fn offers_for_others_and_broken_ones_are_left_alone() {
        let offer = answer(&[OFFER]);
        assert!(read(&offer, MAC).is_some());
        assert_eq!(read(&offer, [0; 6]), None);
        for length in [0, 10, 33, 239, 240] {
            assert_eq!(read(&offer[..length], MAC), None, "{length}");
        }
        let mut from_a_client = offer.clone();
        from_a_client[0] = 1;
        assert_eq!(read(&from_a_client, MAC), None);
        let mut without_address = offer;
        without_address[16..20].fill(0);
        assert_eq!(read(&without_address, MAC), None);
        assert_eq!(read(&answer(&[&[51, 4, 0, 0, 0, 60]]), MAC), None, "no kind");
    }

    #[test]
    fn one_broken_option_does_not_cost_the_others() {
        let lease = offered(&[
            &[12, 3, 0xff, 0xfe, b'x', 1, 3, 255, 255, 0],
            &[119, 3, 9, b'a', b'b', 51, 4, 0, 0, 0, 99],
        ]);
        assert_eq!((lease.seconds, lease.prefix()), (99, 24));
        assert!(lease.hostname.ends_with('x'), "{lease:?}");
        // The last one is longer than the packet.
        let lease = offered(&[&[51, 4, 0, 0, 0, 98, 3, 200, 1]]);
        assert_eq!(lease.seconds, 98);
    }

    #[test]
    fn classless_routes_count_more_than_routers() {
        // 10.0.0.0/8 by 10.0.2.9, and everything by 10.0.2.1.
        let routes = [8, 10, 10, 0, 2, 9, 0, 10, 0, 2, 1];
        let expected = [
            route("10.0.0.0", 8, Some("10.0.2.9")),
            route("0.0.0.0", 0, Some("10.0.2.1")),
        ];
        for code in [121, CLASSLESS_OF_WINDOWS] {
            let option = [&[code, 11][..], &routes].concat();
            let lease = offered(&[&[3, 4, 10, 0, 2, 2], &option]);
            assert_eq!(lease.routes, expected, "{code}");
        }
        // Of both, that of the standard.
        let lease = offered(&[&[249, 5, 0, 10, 0, 2, 7], &[121, 5, 0, 10, 0, 2, 8]]);
        assert_eq!(lease.routes, [route("0.0.0.0", 0, Some("10.0.2.8"))]);
        // None at all is an answer, too.
        assert_eq!(offered(&[&[3, 4, 10, 0, 2, 2], &[121, 0]]).routes, []);
    }

    #[test]
    fn a_gateway_outside_of_the_network_is_told_to_be_on_the_link() {
        let narrow = [1, 4, 255, 255, 255, 255];
        let lease = offered(&[&narrow, &[3, 4, 10, 0, 2, 2]]);
        assert_eq!(
            lease.routes,
            [route("10.0.2.2", 32, None), route("0.0.0.0", 0, Some("10.0.2.2"))]
        );
        // A server that thinks of it says so itself, in any order.
        let routes = [121, 14, 0, 10, 0, 2, 2, 32, 10, 0, 2, 2, 0, 0, 0, 0];
        assert_eq!(offered(&[&narrow, &routes]).routes, lease.routes);
    }

    #[test]
    fn moments_of_a_lease_are_in_order_whatever_a_server_sets() {
        let table = [
            // Lease, T1, T2 as set; as used.
            (3600, None, None, (1800, 3150, 3600)),
            (3600, Some(60), Some(90), (60, 90, 3600)),
            (3600, Some(3600), Some(7200), (1800, 3150, 3600)),
            (3600, Some(0), Some(0), (1800, 3150, 3600)),
            (3600, None, Some(10), (10, 10, 3600)),
            (0, None, None, (15, 27, 30)),
            (
                INFINITE - 1,
                None,
                None,
                (2_147_483_647, 3_758_096_383, INFINITE - 1),
            ),
        ];
        for (seconds, renew_after, rebind_after, (renew, rebind, end)) in table {
            let lease = Lease {
                seconds,
                renew_after,
                rebind_after,
                ..offered(&[])
            };
            let expected = Times {
                renew: Duration::from_secs(renew),
                rebind: Duration::from_secs(rebind),
                end: Duration::from_secs(end.into()),
            };
            assert_eq!(
                lease.times(),
                Some(expected),
                "{seconds} {renew_after:?} {rebind_after:?}"
            );
        }
        let lease = Lease {
            seconds: INFINITE,
            ..offered(&[])
        };
        assert_eq!(lease.times(), None);
    }

    #[test]
    fn questions_are_what_servers_expect() {
        let (address, server) = (Ipv4Addr::new(10, 0, 2, 15), Ipv4Addr::new(10, 0, 2, 2));
        let table = [
            // Flags, own address, requested address, server, where it goes.
            (Kind::Discover, true, None, None, None, Ipv4Addr::BROADCAST),
            (
                Kind::Select { address, server },
                true,
                None,
                Some(address),
                Some(server),
                Ipv4Addr::BROADCAST,
            ),
            (
                Kind::Renew { address, server },
                false,
                Some(address),
                None,
                None,
                server,
            ),
            (
                Kind::Rebind { address },
                false,
                Some(address),
                None,
                None,
                Ipv4Addr::BROADCAST,
            ),
        ];
        for (kind, broadcast, own, requested, by, to) in table {
            let question = Question {
                id: 9,
                seconds: 4,
                kind,
            };
            assert_eq!(question.to(), to);
            let packet = question.packet(MAC).unwrap();
            assert!(packet.len() >= SHORTEST);
            let message = Message::from_bytes(&packet).unwrap();
            assert_eq!(
                (message.xid(), message.secs(), message.chaddr()),
                (9, 4, &MAC[..])
            );
            assert_eq!(message.flags().broadcast(), broadcast);
            assert_eq!(message.ciaddr(), own.unwrap_or(Ipv4Addr::UNSPECIFIED));
            let option = |code| message.opts().get(code).cloned();
            assert_eq!(
                option(OptionCode::RequestedIpAddress),
                requested.map(DhcpOption::RequestedIpAddress)
            );
            assert_eq!(
                option(OptionCode::ServerIdentifier),
                by.map(DhcpOption::ServerIdentifier)
            );
            assert_eq!(
                option(OptionCode::ParameterRequestList),
                Some(DhcpOption::ParameterRequestList(WANTED.to_vec()))
            );
        }
    }
}
