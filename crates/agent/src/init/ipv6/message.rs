//! DHCPv6 messages (RFC 8415): what servers are asked, and what their answers give.

use crate::sys::packet::Mac;
use dhcproto::v6::{
    DhcpOption, DhcpOptions, IAAddr, IANA, Message, MessageType, NtpSuboption, ORO, OptionCode, Status,
};
use dhcproto::{Decodable, Encodable};
use std::net::Ipv6Addr;

const WANTED: [OptionCode; 4] = [
    OptionCode::DomainNameServers,
    OptionCode::DomainSearchList,
    OptionCode::InformationRefreshTime,
    OptionCode::NtpServer,
];
/// RFC 8415: seconds until settings given without an address are asked for again, unless the server says when.
const REFRESH: u32 = 86_400;
const SHORTEST_REFRESH: u32 = 600;

/// What servers tell besides addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    pub name_servers: Vec<Ipv6Addr>,
    pub search: Vec<String>,
    pub time_servers: Vec<Ipv6Addr>,
}

/// An address for a while. Times are in seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub address: Ipv6Addr,
    pub valid: u32,
    pub preferred: u32,
    pub renew_after: u32,
    pub rebind_after: u32,
    pub server: Vec<u8>,
    pub told: Told,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Solicit,
    Request(Lease),
    Renew(Lease),
    Rebind(Lease),
    /// Everything but an address.
    Inform,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub id: u32,
    /// In hundredths of seconds, since it was asked for the first time.
    pub elapsed: u16,
    pub kind: Kind,
}

/// RFC 8415, section 11.4: the card itself is who asks.
fn own_id(mac: Mac) -> Vec<u8> {
    [&[0, 3, 0, 1][..], &mac[..]].concat()
}

/// Which of our addresses it is about: there is one for each card.
fn association(mac: Mac) -> u32 {
    u32::from_be_bytes([mac[2], mac[3], mac[4], mac[5]])
}

impl Question {
    pub fn packet(&self, mac: Mac) -> anyhow::Result<Vec<u8>> {
        let (kind, lease, names_server) = match &self.kind {
            Kind::Solicit => (MessageType::Solicit, None, false),
            Kind::Request(lease) => (MessageType::Request, Some(lease), true),
            Kind::Renew(lease) => (MessageType::Renew, Some(lease), true),
            Kind::Rebind(lease) => (MessageType::Rebind, Some(lease), false),
            Kind::Inform => (MessageType::InformationRequest, None, false),
        };
        let [_, id @ ..] = self.id.to_be_bytes();
        let mut message = Message::new_with_id(kind, id);
        let options = message.opts_mut();
        options.insert(DhcpOption::ClientId(own_id(mac)));
        options.insert(DhcpOption::ElapsedTime(self.elapsed));
        options.insert(DhcpOption::ORO(ORO {
            opts: WANTED.to_vec(),
        }));
        if let Some(lease) = lease.filter(|_| names_server) {
            options.insert(DhcpOption::ServerId(lease.server.clone()));
        }
        if self.kind != Kind::Inform {
            let address = |lease: &Lease| {
                DhcpOption::IAAddr(IAAddr {
                    addr: lease.address,
                    preferred_life: 0,
                    valid_life: 0,
                    opts: DhcpOptions::new(),
                })
            };
            options.insert(DhcpOption::IANA(IANA {
                id: association(mac),
                t1: 0,
                t2: 0,
                opts: lease.map(address).into_iter().collect(),
            }));
        }
        Ok(message.to_vec()?)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub id: u32,
    pub said: Said,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    Offer(Lease),
    Reply {
        /// None when the server gives no address, or takes it back.
        lease: Option<Lease>,
        told: Told,
        /// Seconds.
        refresh_after: u32,
        server: Vec<u8>,
    },
}

/// Reads an answer to a card.
pub fn read(packet: &[u8], mac: Mac) -> Option<Answer> {
    let message = Message::from_bytes(packet).ok()?;
    let options = message.opts();
    match options.get(OptionCode::ClientId) {
        Some(DhcpOption::ClientId(client)) if *client == own_id(mac) => {}
        _ => return None,
    }
    let Some(DhcpOption::ServerId(server)) = options.get(OptionCode::ServerId) else {
        return None;
    };
    let told = told(options);
    let lease = lease(options, association(mac), server, &told).filter(|_| is_fine(options));
    let said = match message.msg_type() {
        MessageType::Advertise => Said::Offer(lease?),
        MessageType::Reply => Said::Reply {
            lease,
            told,
            refresh_after: refresh_after(options),
            server: server.clone(),
        },
        _ => return None,
    };
    Some(Answer {
        id: message.xid_num(),
        said,
    })
}

fn is_fine(options: &DhcpOptions) -> bool {
    match options.get(OptionCode::StatusCode) {
        Some(DhcpOption::StatusCode(code)) => code.status == Status::Success,
        _ => true,
    }
}

fn lease(options: &DhcpOptions, association: u32, server: &[u8], told: &Told) -> Option<Lease> {
    let ours = |option: &&DhcpOption| matches!(option, DhcpOption::IANA(ia) if ia.id == association);
    let Some(DhcpOption::IANA(ia)) = options.iter().find(ours) else {
        return None;
    };
    let usable = |option: &DhcpOption| match option {
        DhcpOption::IAAddr(address) if address.valid_life > 0 && is_fine(&address.opts) => {
            Some(address.clone())
        }
        _ => None,
    };
    let address = ia.opts.iter().find_map(usable).filter(|_| is_fine(&ia.opts))?;
    let valid = address.valid_life;
    let preferred = match address.preferred_life.min(valid) {
        0 => valid,
        preferred => preferred,
    };
    // Servers that leave the choice to us say 0.
    let part = |tenths: u32| (u64::from(preferred) * u64::from(tenths) / 10) as u32;
    let rebind_after = match ia.t2 {
        t2 if (1..valid).contains(&t2) => t2,
        _ => part(8).max(1),
    };
    let renew_after = match ia.t1 {
        t1 if (1..=rebind_after).contains(&t1) => t1,
        _ => part(5).clamp(1, rebind_after),
    };
    Some(Lease {
        address: address.addr,
        valid,
        preferred,
        renew_after,
        rebind_after,
        server: server.to_vec(),
        told: told.clone(),
    })
}

fn told(options: &DhcpOptions) -> Told {
    let mut told = Told::default();
    for option in options.iter() {
        match option {
            DhcpOption::DomainNameServers(servers) => {
                let usable = servers.iter().filter(|ip| !ip.is_unicast_link_local());
                told.name_servers.extend(usable);
            }
            DhcpOption::DomainSearchList(names) => {
                let names = names
                    .iter()
                    .map(|name| name.to_ascii().trim_end_matches('.').to_owned());
                told.search.extend(names.filter(|name| !name.is_empty()));
            }
            DhcpOption::NtpServer(servers) => {
                told.time_servers
                    .extend(servers.iter().filter_map(|one| match one {
                        NtpSuboption::ServerAddress(ip) => Some(*ip),
                        NtpSuboption::MulticastAddress(_) | NtpSuboption::FQDN(_) => None,
                    }))
            }
            _ => {}
        }
    }
    told
}

fn refresh_after(options: &DhcpOptions) -> u32 {
    let told = match options.get(OptionCode::InformationRefreshTime) {
        Some(DhcpOption::InformationRefreshTime(seconds)) => Some(*seconds),
        // The decoder leaves it as it is.
        Some(DhcpOption::Unknown(raw)) => raw.data().try_into().ok().map(u32::from_be_bytes),
        _ => None,
    };
    told.map_or(REFRESH, |seconds| seconds.max(SHORTEST_REFRESH))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dhcproto::v6::StatusCode;

    const MAC: Mac = [0x52, 0x54, 0, 0, 0, 1];
    const ADDRESS: &str = "2001:db8::15";

    fn address(valid: u32, preferred: u32) -> DhcpOption {
        DhcpOption::IAAddr(IAAddr {
            addr: ADDRESS.parse().unwrap(),
            preferred_life: preferred,
            valid_life: valid,
            opts: DhcpOptions::new(),
        })
    }

    fn status(status: Status) -> DhcpOption {
        DhcpOption::StatusCode(StatusCode {
            status,
            msg: String::new(),
        })
    }

    fn association_with(times: (u32, u32), options: Vec<DhcpOption>) -> DhcpOption {
        DhcpOption::IANA(IANA {
            id: association(MAC),
            t1: times.0,
            t2: times.1,
            opts: options.into_iter().collect(),
        })
    }

    fn packet(kind: MessageType, options: Vec<DhcpOption>) -> Vec<u8> {
        let mut message = Message::new_with_id(kind, [0, 0, 7]);
        let own = [
            DhcpOption::ClientId(own_id(MAC)),
            DhcpOption::ServerId(vec![0, 2, 9]),
        ];
        message.set_opts(own.into_iter().chain(options).collect());
        message.to_vec().unwrap()
    }

    fn said(kind: MessageType, options: Vec<DhcpOption>) -> Option<Said> {
        let answer = read(&packet(kind, options), MAC)?;
        assert_eq!(answer.id, 7);
        Some(answer.said)
    }

    #[test]
    fn a_reply_is_read_whole() {
        let options = vec![
            association_with((100, 200), vec![address(400, 300)]),
            DhcpOption::DomainNameServers(vec!["2001:db8::53".parse().unwrap(), "fe80::1".parse().unwrap()]),
            DhcpOption::DomainSearchList(vec!["lab.example.".parse().unwrap()]),
            DhcpOption::NtpServer(vec![NtpSuboption::ServerAddress(
                "2001:db8::123".parse().unwrap(),
            )]),
            DhcpOption::InformationRefreshTime(7200),
        ];
        let told = Told {
            name_servers: vec!["2001:db8::53".parse().unwrap()],
            search: vec!["lab.example".into()],
            time_servers: vec!["2001:db8::123".parse().unwrap()],
        };
        let lease = Lease {
            address: ADDRESS.parse().unwrap(),
            valid: 400,
            preferred: 300,
            renew_after: 100,
            rebind_after: 200,
            server: vec![0, 2, 9],
            told: told.clone(),
        };
        assert_eq!(
            said(MessageType::Advertise, options.clone()),
            Some(Said::Offer(lease.clone()))
        );
        let expected = Said::Reply {
            lease: Some(lease),
            told,
            refresh_after: 7200,
            server: vec![0, 2, 9],
        };
        assert_eq!(said(MessageType::Reply, options), Some(expected));
    }

    #[test]
    fn servers_that_give_nothing_give_no_lease() {
        let table = [
            vec![],
            vec![association_with((0, 0), vec![])],
            vec![association_with((0, 0), vec![address(0, 0)])],
            vec![association_with(
                (0, 0),
                vec![address(9, 9), status(Status::NoBinding)],
            )],
            vec![
                association_with((0, 0), vec![address(9, 9)]),
                status(Status::NoAddrsAvail),
            ],
        ];
        for options in table {
            assert_eq!(said(MessageType::Advertise, options.clone()), None);
            let reply = said(MessageType::Reply, options).unwrap();
            assert!(matches!(reply, Said::Reply { lease: None, .. }), "{reply:?}");
        }
    }

    #[test]
    fn moments_of_a_lease_are_in_order_whatever_a_server_sets() {
        let table = [
            // T1, T2, valid, preferred; T1 and T2 as used.
            (0, 0, 1000, 100, (50, 80)),
            (10, 20, 1000, 100, (10, 20)),
            (30, 20, 1000, 100, (20, 20)),
            (5000, 9000, 1000, 100, (50, 80)),
            (0, 0, 1, 1, (1, 1)),
            (0, 0, 1000, 0, (500, 800)),
        ];
        for (t1, t2, valid, preferred, expected) in table {
            let options = vec![association_with((t1, t2), vec![address(valid, preferred)])];
            let Some(Said::Offer(lease)) = said(MessageType::Advertise, options) else {
                panic!("no lease")
            };
            assert_eq!((lease.renew_after, lease.rebind_after), expected, "{t1} {t2}");
        }
    }

    #[test]
    fn answers_for_others_and_broken_ones_are_left_alone() {
        let whole = packet(
            MessageType::Advertise,
            vec![association_with((0, 0), vec![address(9, 9)])],
        );
        assert!(read(&whole, MAC).is_some());
        assert_eq!(read(&whole, [0; 6]), None);
        for length in 0..whole.len() {
            assert_eq!(read(&whole[..length], MAC), None, "{length}");
        }
        assert_eq!(said(MessageType::Solicit, vec![]), None);
    }

    #[test]
    fn questions_are_what_servers_expect() {
        let lease = Lease {
            address: ADDRESS.parse().unwrap(),
            valid: 400,
            preferred: 300,
            renew_after: 100,
            rebind_after: 200,
            server: vec![0, 2, 9],
            told: Told::default(),
        };
        let table = [
            // Kind, whether it names the server, an association, the address.
            (Kind::Solicit, MessageType::Solicit, false, true, false),
            (
                Kind::Request(lease.clone()),
                MessageType::Request,
                true,
                true,
                true,
            ),
            (Kind::Renew(lease.clone()), MessageType::Renew, true, true, true),
            (Kind::Rebind(lease), MessageType::Rebind, false, true, true),
            (Kind::Inform, MessageType::InformationRequest, false, false, false),
        ];
        for (kind, expected, server, associated, addressed) in table {
            let question = Question {
                id: 0x01_02_03,
                elapsed: 4,
                kind,
            };
            let message = Message::from_bytes(&question.packet(MAC).unwrap()).unwrap();
            assert_eq!((message.msg_type(), message.xid()), (expected, [1, 2, 3]));
            let options = message.opts();
            assert_eq!(
                options.get(OptionCode::ClientId),
                Some(&DhcpOption::ClientId(own_id(MAC)))
            );
            assert_eq!(options.get(OptionCode::ServerId).is_some(), server);
            let association = options.get(OptionCode::IANA);
            assert_eq!(association.is_some(), associated);
            let has_address =
                matches!(association, Some(DhcpOption::IANA(ia)) if ia.opts.iter().count() == 1);
            assert_eq!(has_address, addressed);
        }
    }
}
