//! What a machine does to have IPv6 (RFC 4861, 8415), without a socket or a clock: it takes the time and what routers
//! and servers say, and says what to do.
//!
//! Addresses and routes that routers announce are the kernel's business. Here routers are asked to speak up, DHCPv6 is
//! asked where they say so, and what they tell of names is kept as long as it is good.

use super::advert::Advert;
use super::message::{Answer, Kind, Lease, Question, Said, Told};
use crate::init::names::Names;
use std::collections::BTreeMap;
use std::mem;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

/// Between questions to routers, until one answers (RFC 7559: never give up, but slow down).
const ROUTERS_FIRST: Duration = Duration::from_secs(4);
const ROUTERS_LONGEST: Duration = Duration::from_secs(60);

/// Between questions to servers: the first repetition and the longest pause (RFC 8415, section 7.6). A machine that waits
/// for its address does not wait an hour for the next try.
struct Pace {
    first: Duration,
    longest: Duration,
}

const SEEK: Pace = Pace {
    first: Duration::from_secs(1),
    longest: Duration::from_secs(120),
};
const REQUEST: Pace = Pace {
    first: Duration::from_secs(1),
    longest: Duration::from_secs(30),
};
const RENEW: Pace = Pace {
    first: Duration::from_secs(10),
    longest: Duration::from_secs(600),
};
/// RFC 8415: then another server is looked for.
const REQUEST_TRIES: u32 = 10;
/// "For ever", as RFC 8415 writes it.
const INFINITE: u32 = u32::MAX;

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    AskRouters,
    Send(Question),
    /// Use what this lease gives; it replaces the one before.
    Use(Box<Lease>),
    /// The lease has ended.
    Drop,
    /// A server told this without an address.
    Told(Told),
    /// What all routers tell of names.
    Names(Names),
}

#[derive(Debug)]
enum State {
    /// No router has sent us to a server yet.
    Idle,
    Soliciting,
    Requesting {
        offer: Box<Lease>,
        tries: u32,
    },
    Bound(Held),
    Renewing(Held),
    Rebinding(Held),
    Informing,
    Informed,
}

/// A lease and when it began.
#[derive(Debug)]
struct Held {
    lease: Box<Lease>,
    since: Duration,
}

impl Held {
    fn at(&self, seconds: u32) -> Option<Duration> {
        (seconds != INFINITE).then(|| self.since + Duration::from_secs(seconds.into()))
    }
}

#[derive(Debug)]
pub struct Client {
    state: State,
    /// When to ask routers, while none has answered.
    routers_due: Option<Duration>,
    routers_pause: Duration,
    /// What each router told of names, and until when it is good.
    names: BTreeMap<Ipv6Addr, (Names, Duration)>,
    /// Of the questions to servers that wait for an answer.
    id: u32,
    server_due: Option<Duration>,
    began: Duration,
    asked: Duration,
    pause: Duration,
}

impl Client {
    pub fn new(now: Duration) -> Self {
        Self {
            state: State::Idle,
            routers_due: Some(now),
            routers_pause: ROUTERS_FIRST,
            names: BTreeMap::new(),
            id: 0,
            server_due: None,
            began: now,
            asked: now,
            pause: SEEK.first,
        }
    }

    /// Nothing when only routers can bring news.
    pub fn due(&self) -> Option<Duration> {
        let names = self.names.values().map(|(_, until)| *until);
        [self.routers_due, self.server_due]
            .into_iter()
            .flatten()
            .chain(names)
            .min()
    }

    /// The time has come. `chance` is between 0 and 1, another one each time.
    pub fn wake(&mut self, now: Duration, chance: f64) -> Vec<Order> {
        let mut orders = Vec::new();
        if self.routers_due.is_some_and(|due| due <= now) {
            self.routers_due = Some(now + spread(self.routers_pause, chance));
            self.routers_pause = (self.routers_pause * 2).min(ROUTERS_LONGEST);
            orders.push(Order::AskRouters);
        }
        let known = self.names.len();
        self.names.retain(|_, (_, until)| *until > now);
        if self.names.len() != known {
            orders.push(Order::Names(self.all_names()));
        }
        if self.server_due.is_some_and(|due| due <= now) {
            orders.extend(self.wake_for_server(now, chance));
        }
        orders
    }

    /// A router says something.
    pub fn hear_router(&mut self, now: Duration, from: Ipv6Addr, advert: Advert, chance: f64) -> Vec<Order> {
        let mut orders = Vec::new();
        self.routers_due = None;
        let before = self.all_names();
        let names = Names {
            servers: advert.servers.into_iter().map(IpAddr::V6).collect(),
            search: advert.search,
        };
        if names == Names::default() || advert.names_for.is_zero() {
            self.names.remove(&from);
        } else {
            self.names.insert(from, (names, now + advert.names_for));
        }
        let after = self.all_names();
        if after != before {
            orders.push(Order::Names(after));
        }
        match (&self.state, advert.managed, advert.other) {
            (State::Idle | State::Informing | State::Informed, true, _) => {
                self.state = State::Soliciting;
                self.begin(now, chance, &SEEK);
                orders.push(self.ask_again(now, chance, &SEEK, Kind::Solicit));
            }
            (State::Idle, false, true) => {
                self.state = State::Informing;
                self.begin(now, chance, &SEEK);
                orders.push(self.ask_again(now, chance, &SEEK, Kind::Inform));
            }
            (
                State::Idle
                | State::Soliciting
                | State::Requesting { .. }
                | State::Bound(_)
                | State::Renewing(_)
                | State::Rebinding(_)
                | State::Informing
                | State::Informed,
                _,
                _,
            ) => {}
        }
        orders
    }

    /// A server says something.
    pub fn hear_server(&mut self, now: Duration, answer: Answer, chance: f64) -> Vec<Order> {
        if answer.id != self.id {
            return Vec::new();
        }
        match (mem::replace(&mut self.state, State::Idle), answer.said) {
            (State::Soliciting, Said::Offer(offer)) => self.request(offer, now, chance),
            (
                State::Requesting { offer, .. },
                Said::Reply {
                    lease: Some(lease),
                    server,
                    ..
                },
            ) if server == offer.server => self.bind(lease),
            (
                State::Requesting { offer, .. },
                Said::Reply {
                    lease: None, server, ..
                },
            ) if server == offer.server => {
                // It has changed its mind.
                self.solicit_later(now, chance);
                Vec::new()
            }
            (
                State::Renewing(_) | State::Rebinding(_),
                Said::Reply {
                    lease: Some(lease), ..
                },
            ) => self.bind(lease),
            (State::Renewing(_), Said::Reply { lease: None, .. }) => {
                self.solicit_later(now, chance);
                vec![Order::Drop]
            }
            (
                State::Informing,
                Said::Reply {
                    told, refresh_after, ..
                },
            ) => {
                self.state = State::Informed;
                self.id = 0;
                self.server_due = Some(now + Duration::from_secs(refresh_after.into()));
                vec![Order::Told(told)]
            }
            // While any server is asked, one that knows nothing of the lease does not end it.
            (state, Said::Offer(_) | Said::Reply { .. }) => {
                self.state = state;
                Vec::new()
            }
        }
    }

    fn wake_for_server(&mut self, now: Duration, chance: f64) -> Vec<Order> {
        match mem::replace(&mut self.state, State::Idle) {
            State::Idle => {
                self.server_due = None;
                Vec::new()
            }
            State::Soliciting => {
                self.state = State::Soliciting;
                if self.id == 0 {
                    self.begin(now, chance, &SEEK);
                }
                vec![self.ask_again(now, chance, &SEEK, Kind::Solicit)]
            }
            State::Requesting { tries, .. } if tries >= REQUEST_TRIES => {
                self.state = State::Soliciting;
                self.begin(now, chance, &SEEK);
                vec![self.ask_again(now, chance, &SEEK, Kind::Solicit)]
            }
            State::Requesting { offer, tries } => {
                let kind = Kind::Request((*offer).clone());
                self.state = State::Requesting {
                    offer,
                    tries: tries + 1,
                };
                vec![self.ask_again(now, chance, &REQUEST, kind)]
            }
            State::Bound(held) => {
                self.begin(now, chance, &RENEW);
                self.keep_asking(held, false, now, chance)
            }
            State::Renewing(held) => self.keep_asking(held, false, now, chance),
            State::Rebinding(held) => self.keep_asking(held, true, now, chance),
            State::Informing => {
                self.state = State::Informing;
                vec![self.ask_again(now, chance, &SEEK, Kind::Inform)]
            }
            State::Informed => {
                self.state = State::Informing;
                self.begin(now, chance, &SEEK);
                vec![self.ask_again(now, chance, &SEEK, Kind::Inform)]
            }
        }
    }

    fn request(&mut self, offer: Lease, now: Duration, chance: f64) -> Vec<Order> {
        let kind = Kind::Request(offer.clone());
        self.state = State::Requesting {
            offer: Box::new(offer),
            tries: 1,
        };
        self.begin(now, chance, &REQUEST);
        vec![self.ask_again(now, chance, &REQUEST, kind)]
    }

    fn solicit_later(&mut self, now: Duration, chance: f64) {
        self.state = State::Soliciting;
        self.id = 0;
        self.server_due = Some(now + spread(RENEW.first, chance));
    }

    fn bind(&mut self, lease: Lease) -> Vec<Order> {
        let held = Held {
            lease: Box::new(lease),
            since: self.asked,
        };
        let order = Order::Use(held.lease.clone());
        // A lease whose times never come is never asked for again.
        self.server_due = held.at(held.lease.renew_after);
        self.state = State::Bound(held);
        self.id = 0;
        vec![order]
    }

    /// Its server first, then any, until the lease ends.
    fn keep_asking(&mut self, held: Held, is_rebinding: bool, now: Duration, chance: f64) -> Vec<Order> {
        let (rebind, end) = (held.at(held.lease.rebind_after), held.at(held.lease.valid));
        let lease = (*held.lease).clone();
        if end.is_some_and(|end| now >= end) {
            self.state = State::Soliciting;
            self.begin(now, chance, &SEEK);
            return vec![Order::Drop, self.ask_again(now, chance, &SEEK, Kind::Solicit)];
        }
        let (kind, until) = if is_rebinding || rebind.is_some_and(|rebind| now >= rebind) {
            if !is_rebinding {
                self.begin(now, chance, &RENEW);
            }
            self.state = State::Rebinding(held);
            (Kind::Rebind(lease), end)
        } else {
            self.state = State::Renewing(held);
            (Kind::Renew(lease), rebind)
        };
        let order = self.ask_again(now, chance, &RENEW, kind);
        self.server_due = self.server_due.into_iter().chain(until).min();
        vec![order]
    }

    fn begin(&mut self, now: Duration, chance: f64, pace: &Pace) {
        self.began = now;
        self.pause = pace.first;
        // Three bytes; never 0, which stands for "asks nothing".
        self.id = (chance * f64::from(0x00ff_fffe_u32)) as u32 + 1;
    }

    fn ask_again(&mut self, now: Duration, chance: f64, pace: &Pace, kind: Kind) -> Order {
        self.asked = now;
        self.server_due = Some(now + spread(self.pause, chance));
        self.pause = (self.pause * 2).min(pace.longest);
        let hundredths = now.saturating_sub(self.began).as_millis() / 10;
        Order::Send(Question {
            id: self.id,
            elapsed: u16::try_from(hundredths).unwrap_or(u16::MAX),
            kind,
        })
    }

    fn all_names(&self) -> Names {
        let mut all = Names::default();
        for (names, _) in self.names.values() {
            all.servers.extend(&names.servers);
            all.search.extend(names.search.iter().cloned());
        }
        all
    }
}

/// RFC 8415: a tenth more or less, so that many machines do not ask at the same moment.
fn spread(pause: Duration, chance: f64) -> Duration {
    pause.mul_f64(0.9 + 0.2 * chance)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANCE: f64 = 0.5;
    const SERVER: u8 = 1;
    const OTHER: u8 = 2;

    fn lease(server: u8) -> Lease {
        Lease {
            address: "2001:db8::15".parse().unwrap(),
            valid: 4000,
            preferred: 2000,
            renew_after: 1000,
            rebind_after: 1600,
            server: vec![server],
            told: Told::default(),
        }
    }

    fn reply(server: u8, lease: Option<Lease>) -> Said {
        Said::Reply {
            lease,
            told: Told::default(),
            refresh_after: 5000,
            server: vec![server],
        }
    }

    /// What happens to a client.
    enum Step {
        /// Seconds after the start.
        At(u64),
        /// A router says: managed, other.
        Router(bool, bool),
        /// A router tells of a name server, for so many seconds.
        Dns(u16, u64),
        Offer(u8),
        Give(u8),
        Refuse(u8),
        Stray(Box<Said>),
    }
    use Step::{At, Dns, Give, Offer, Refuse, Router, Stray};

    fn play(table: &[(Step, &[&str])]) -> Client {
        let mut client = Client::new(Duration::ZERO);
        let mut now = Duration::ZERO;
        for (at, (step, expected)) in table.iter().enumerate() {
            let hear = |client: &mut Client, said| {
                let id = client.id;
                client.hear_server(now, Answer { id, said }, CHANCE)
            };
            let router = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
            let orders = match step {
                At(seconds) => {
                    now = Duration::from_secs(*seconds);
                    client.wake(now, CHANCE)
                }
                Router(managed, other) => {
                    let advert = Advert {
                        managed: *managed,
                        other: *other,
                        ..Advert::default()
                    };
                    client.hear_router(now, router, advert, CHANCE)
                }
                Dns(last, seconds) => {
                    let advert = Advert {
                        servers: vec![Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, *last)],
                        names_for: Duration::from_secs(*seconds),
                        ..Advert::default()
                    };
                    client.hear_router(now, router, advert, CHANCE)
                }
                Offer(server) => hear(&mut client, Said::Offer(lease(*server))),
                Give(server) => hear(&mut client, reply(*server, Some(lease(*server)))),
                Refuse(server) => hear(&mut client, reply(*server, None)),
                Stray(said) => {
                    let id = client.id.wrapping_add(1);
                    let said = (**said).clone();
                    client.hear_server(now, Answer { id, said }, CHANCE)
                }
            };
            assert_eq!(
                orders.iter().map(word).collect::<Vec<_>>(),
                *expected,
                "line {at}"
            );
        }
        client
    }

    fn word(order: &Order) -> String {
        match order {
            Order::AskRouters => "routers".into(),
            Order::Drop => "drop".into(),
            Order::Told(_) => "told".into(),
            Order::Names(names) => format!("names {:?}", names.servers),
            Order::Use(lease) => format!("use of {:?}", lease.server),
            Order::Send(question) => match &question.kind {
                Kind::Solicit => format!("solicit {}", question.elapsed),
                Kind::Request(lease) => format!("request {:?}", lease.server),
                Kind::Renew(lease) => format!("renew {:?}", lease.server),
                Kind::Rebind(_) => "rebind".into(),
                Kind::Inform => "inform".into(),
            },
        }
    }

    #[test]
    fn routers_are_asked_until_one_speaks() {
        let client = play(&[
            (At(0), &["routers"]),
            (At(3), &[]),
            (At(4), &["routers"]),
            (At(12), &["routers"]),
            (At(100), &["routers"]),
            (At(500), &["routers"]),
            (Router(false, false), &[]),
            (At(10_000), &[]),
        ]);
        assert_eq!(client.due(), None, "nothing to do but to listen");
    }

    #[test]
    fn where_routers_say_so_an_address_is_asked_for_and_renewed() {
        play(&[
            (At(0), &["routers"]),
            (Router(true, true), &["solicit 0"]),
            (Router(true, true), &[]),
            (At(1), &["solicit 100"]),
            (At(3), &["solicit 300"]),
            (Offer(SERVER), &["request [1]"]),
            (Give(SERVER), &["use of [1]"]),
            (Router(true, true), &[]),
            (At(1002), &[]),
            (At(1003), &["renew [1]"]),
            (At(1013), &["renew [1]"]),
            (Give(SERVER), &["use of [1]"]),
            (At(2012), &[]),
            (At(2013), &["renew [1]"]),
        ]);
    }

    #[test]
    fn a_server_that_is_gone_is_asked_then_any_server_then_the_address_is_given_up() {
        play(&[
            (At(0), &["routers"]),
            (Router(true, false), &["solicit 0"]),
            (Offer(SERVER), &["request [1]"]),
            (Give(SERVER), &["use of [1]"]),
            (At(1000), &["renew [1]"]),
            (At(1010), &["renew [1]"]),
            (At(1500), &["renew [1]"]),
            (At(1600), &["rebind"]),
            (Refuse(OTHER), &[]),
            (At(1610), &["rebind"]),
            (At(3999), &["rebind"]),
            (At(4000), &["drop", "solicit 0"]),
            (Offer(OTHER), &["request [2]"]),
        ]);
    }

    #[test]
    fn another_server_may_take_the_lease_over() {
        play(&[
            (At(0), &["routers"]),
            (Router(true, false), &["solicit 0"]),
            (Offer(SERVER), &["request [1]"]),
            (Give(SERVER), &["use of [1]"]),
            (At(1700), &["rebind"]),
            (Give(OTHER), &["use of [2]"]),
            (At(2700), &["renew [2]"]),
        ]);
    }

    #[test]
    fn a_server_that_takes_the_address_back_ends_the_lease() {
        play(&[
            (At(0), &["routers"]),
            (Router(true, false), &["solicit 0"]),
            (Offer(SERVER), &["request [1]"]),
            (Give(OTHER), &[]),
            (Give(SERVER), &["use of [1]"]),
            (At(1000), &["renew [1]"]),
            (Refuse(SERVER), &["drop"]),
            (At(1009), &[]),
            (At(1010), &["solicit 0"]),
        ]);
    }

    #[test]
    fn a_server_that_offers_and_falls_silent_or_refuses_is_not_the_last_word() {
        play(&[
            (At(0), &["routers"]),
            (Router(true, false), &["solicit 0"]),
            (Offer(SERVER), &["request [1]"]),
            (Refuse(SERVER), &[]),
            (At(10), &["solicit 0"]),
            (Offer(SERVER), &["request [1]"]),
            (At(11), &["request [1]"]),
            (At(13), &["request [1]"]),
            (At(17), &["request [1]"]),
            (At(25), &["request [1]"]),
            (At(41), &["request [1]"]),
            (At(71), &["request [1]"]),
            (At(101), &["request [1]"]),
            (At(131), &["request [1]"]),
            (At(161), &["request [1]"]),
            (At(191), &["solicit 0"]),
        ]);
    }

    #[test]
    fn without_addresses_from_servers_only_the_rest_is_asked_for() {
        play(&[
            (At(0), &["routers"]),
            (Router(false, true), &["inform"]),
            (At(1), &["inform"]),
            (Stray(Box::new(reply(SERVER, None))), &[]),
            (Refuse(SERVER), &["told"]),
            (At(5000), &[]),
            (At(5001), &["inform"]),
            // The network changes: now servers give addresses.
            (Router(true, true), &["solicit 0"]),
        ]);
    }

    #[test]
    fn names_of_routers_are_kept_as_long_as_they_are_good() {
        let client = play(&[
            (At(0), &["routers"]),
            (Dns(1, 100), &["names [2001:db8::1]"]),
            (Dns(1, 100), &[]),
            (At(50), &[]),
            (Dns(1, 100), &[]),
            (At(120), &[]),
            (Dns(2, 100), &["names [2001:db8::2]"]),
            (At(220), &["names []"]),
            (Dns(2, 100), &["names [2001:db8::2]"]),
            (Dns(2, 0), &["names []"]),
        ]);
        assert_eq!(client.due(), None);
    }

    #[test]
    fn a_lease_for_ever_is_never_asked_for_again() {
        let mut client = play(&[
            (At(0), &["routers"]),
            (Router(true, false), &["solicit 0"]),
            (Offer(SERVER), &["request [1]"]),
        ]);
        let for_ever = Lease {
            valid: INFINITE,
            renew_after: INFINITE,
            rebind_after: INFINITE,
            ..lease(SERVER)
        };
        let answer = Answer {
            id: client.id,
            said: reply(SERVER, Some(for_ever)),
        };
        assert_eq!(client.hear_server(Duration::ZERO, answer, CHANCE).len(), 1);
        assert_eq!(client.due(), None);
    }
}
