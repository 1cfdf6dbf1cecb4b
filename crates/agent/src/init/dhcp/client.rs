//! A DHCPv4 client (RFC 2131) without a socket or a clock: it takes the time and what servers say, and says what to do.

use super::message::{Answer, Kind, Lease, Question, Said, Times};
use std::mem;
use std::time::Duration;

/// The first repetition, and how long pauses get: a switch may forward nothing for half a minute after a link comes up,
/// and the machine waits for its address.
const FIRST: Duration = Duration::from_secs(3);
const LONGEST: Duration = Duration::from_secs(10);
/// A server that made an offer and then does not answer is left for another one.
const SELECT_TRIES: u32 = 4;
/// RFC 2131: between repetitions while the address is ours.
const RENEW_PAUSE: Duration = Duration::from_secs(60);
/// A server that offers an address and then refuses it is not asked without pause.
const AFTER_REFUSAL: Duration = Duration::from_secs(10);

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    Send(Question),
    /// Use what this lease gives; it replaces the one before.
    Use(Box<Lease>),
    /// The lease has ended.
    Drop,
}

#[derive(Debug)]
enum State {
    Init,
    Selecting,
    Requesting { offer: Box<Lease>, tries: u32 },
    Bound(Held),
    Renewing(Held),
    Rebinding(Held),
}

/// A lease and when it began.
#[derive(Debug)]
struct Held {
    lease: Box<Lease>,
    times: Times,
    since: Duration,
}

#[derive(Debug)]
pub struct Client {
    state: State,
    /// Of the questions that wait for an answer.
    id: u32,
    /// When to be woken although nobody answers.
    due: Option<Duration>,
    /// When it began to ask, and when it asked last.
    began: Duration,
    asked: Duration,
    pause: Duration,
}

impl Client {
    pub fn new(now: Duration) -> Self {
        Self {
            state: State::Init,
            id: 0,
            due: Some(now),
            began: now,
            asked: now,
            pause: FIRST,
        }
    }

    /// Nothing when the lease lasts for ever.
    pub fn due(&self) -> Option<Duration> {
        self.due
    }

    /// The time has come. `chance` is between 0 and 1, another one each time.
    pub fn wake(&mut self, now: Duration, chance: f64) -> Vec<Order> {
        if self.due.is_none_or(|due| now < due) {
            return Vec::new();
        }
        match mem::replace(&mut self.state, State::Init) {
            State::Init => self.discover(now, chance),
            State::Selecting => {
                self.state = State::Selecting;
                vec![self.ask_again(now, chance, Kind::Discover)]
            }
            State::Requesting { tries, .. } if tries >= SELECT_TRIES => self.discover(now, chance),
            State::Requesting { offer, tries } => {
                let kind = select(&offer);
                self.state = State::Requesting {
                    offer,
                    tries: tries + 1,
                };
                vec![self.ask_again(now, chance, kind)]
            }
            State::Bound(held) => {
                self.begin(now, chance);
                self.keep_asking(held, now, chance)
            }
            State::Renewing(held) | State::Rebinding(held) => self.keep_asking(held, now, chance),
        }
    }

    /// A server says something.
    pub fn hear(&mut self, now: Duration, answer: Answer, chance: f64) -> Vec<Order> {
        if answer.id != self.id {
            return Vec::new();
        }
        match (mem::replace(&mut self.state, State::Init), answer.said) {
            (State::Selecting, Said::Offer(offer)) => {
                let kind = select(&offer);
                self.state = State::Requesting {
                    offer: Box::new(offer),
                    tries: 1,
                };
                self.pause = FIRST;
                vec![self.ask_again(now, chance, kind)]
            }
            (State::Requesting { offer, .. }, Said::Ack(lease)) if lease.server == offer.server => {
                self.bind(lease)
            }
            (State::Requesting { offer, .. }, Said::Nak(server)) if server == offer.server => {
                self.due = Some(now + AFTER_REFUSAL);
                Vec::new()
            }
            (State::Renewing(_) | State::Rebinding(_), Said::Ack(lease)) => self.bind(lease),
            (State::Renewing(_) | State::Rebinding(_), Said::Nak(_)) => {
                let mut orders = vec![Order::Drop];
                orders.extend(self.discover(now, chance));
                orders
            }
            (state, Said::Offer(_) | Said::Ack(_) | Said::Nak(_)) => {
                self.state = state;
                Vec::new()
            }
        }
    }

    fn bind(&mut self, lease: Lease) -> Vec<Order> {
        let lease = Box::new(lease);
        // RFC 2131: it counts from the question, which the server cannot have heard earlier.
        let since = self.asked;
        match lease.times() {
            Some(times) => {
                self.due = Some(since + times.renew);
                let lease = lease.clone();
                self.state = State::Bound(Held { lease, times, since });
            }
            // Nothing ever happens to it.
            None => self.due = None,
        }
        self.id = 0;
        vec![Order::Use(lease)]
    }

    fn begin(&mut self, now: Duration, chance: f64) {
        self.began = now;
        self.pause = FIRST;
        // Never 0, which stands for "asks nothing".
        self.id = (chance * f64::from(u32::MAX - 1)) as u32 + 1;
    }

    fn discover(&mut self, now: Duration, chance: f64) -> Vec<Order> {
        self.begin(now, chance);
        self.state = State::Selecting;
        vec![self.ask_again(now, chance, Kind::Discover)]
    }

    fn ask_again(&mut self, now: Duration, chance: f64, kind: Kind) -> Order {
        // Between 80 % and 120 %, so that many machines do not ask at the same moment.
        self.due = Some(now + self.pause.mul_f64(0.8 + 0.4 * chance));
        self.pause = (self.pause * 3 / 2).min(LONGEST);
        self.ask(now, kind)
    }

    fn ask(&mut self, now: Duration, kind: Kind) -> Order {
        self.asked = now;
        let seconds = now.saturating_sub(self.began).as_secs();
        Order::Send(Question {
            id: self.id,
            seconds: u16::try_from(seconds).unwrap_or(u16::MAX),
            kind,
        })
    }

    /// Its server first, then any, until the lease ends.
    fn keep_asking(&mut self, held: Held, now: Duration, chance: f64) -> Vec<Order> {
        let age = now.saturating_sub(held.since);
        let (address, server) = (held.lease.address, held.lease.server);
        // RFC 2131: after half of the time that is left.
        let next = |until: Duration| {
            let left = until.saturating_sub(age);
            held.since + until.min(age + (left / 2).max(RENEW_PAUSE))
        };
        if age >= held.times.end {
            let mut orders = vec![Order::Drop];
            orders.extend(self.discover(now, chance));
            orders
        } else if age >= held.times.rebind {
            self.due = Some(next(held.times.end));
            self.state = State::Rebinding(held);
            vec![self.ask(now, Kind::Rebind { address })]
        } else {
            self.due = Some(next(held.times.rebind));
            self.state = State::Renewing(held);
            vec![self.ask(now, Kind::Renew { address, server })]
        }
    }
}

fn select(offer: &Lease) -> Kind {
    Kind::Select {
        address: offer.address,
        server: offer.server,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);
    const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);
    const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 3);
    const CHANCE: f64 = 0.5;

    fn lease(server: Ipv4Addr, seconds: u32) -> Lease {
        Lease {
            address: HERE,
            mask: Ipv4Addr::new(255, 255, 255, 0),
            routes: Vec::new(),
            name_servers: Vec::new(),
            search: Vec::new(),
            hostname: String::new(),
            mtu: None,
            time_servers: Vec::new(),
            seconds,
            renew_after: None,
            rebind_after: None,
            server,
        }
    }

    /// What happens to a client, and what it must say to that, as words.
    enum Step {
        /// Seconds after the start.
        At(u64),
        Offer(Ipv4Addr),
        Ack(Ipv4Addr, u32),
        Nak(Ipv4Addr),
        /// Answers a question that was not asked.
        Stray(Said),
    }
    use Step::{Ack, At, Nak, Offer, Stray};

    fn play(table: &[(Step, &[&str])]) -> Client {
        let mut client = Client::new(Duration::ZERO);
        let mut now = Duration::ZERO;
        for (at, (step, expected)) in table.iter().enumerate() {
            let hear = |client: &mut Client, said| {
                let id = client.id;
                client.hear(now, Answer { id, said }, CHANCE)
            };
            let orders = match step {
                At(seconds) => {
                    now = Duration::from_secs(*seconds);
                    client.wake(now, CHANCE)
                }
                Offer(server) => hear(&mut client, Said::Offer(lease(*server, 3600))),
                Ack(server, seconds) => hear(&mut client, Said::Ack(lease(*server, *seconds))),
                Nak(server) => hear(&mut client, Said::Nak(*server)),
                Stray(said) => {
                    let id = client.id.wrapping_add(1);
                    let said = said.clone();
                    client.hear(now, Answer { id, said }, CHANCE)
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
            Order::Drop => "drop".into(),
            Order::Use(lease) => format!("use {} of {}", lease.address, lease.server),
            Order::Send(question) => match &question.kind {
                Kind::Discover => format!("discover after {} s", question.seconds),
                Kind::Select { address, server } => format!("select {address} of {server}"),
                Kind::Renew { address, server } => format!("renew {address} at {server}"),
                Kind::Rebind { address } => format!("rebind {address}"),
            },
        }
    }

    const USE: &[&str] = &["use 10.0.2.15 of 10.0.2.2"];
    const SELECT: &[&str] = &["select 10.0.2.15 of 10.0.2.2"];
    const RENEW: &[&str] = &["renew 10.0.2.15 at 10.0.2.2"];
    const REBIND: &[&str] = &["rebind 10.0.2.15"];

    #[test]
    fn a_network_without_a_server_is_asked_again_and_again() {
        let client = play(&[
            (At(0), &["discover after 0 s"]),
            (At(2), &[]),
            (At(3), &["discover after 3 s"]),
            (At(7), &[]),
            (At(8), &["discover after 8 s"]),
            (At(1000), &["discover after 1000 s"]),
        ]);
        assert_eq!(client.due(), Some(Duration::from_secs(1010)), "pauses stay short");
    }

    #[test]
    fn an_address_is_asked_for_and_renewed_at_half_time() {
        let client = play(&[
            (At(0), &["discover after 0 s"]),
            (Offer(SERVER), SELECT),
            (Ack(SERVER, 3600), USE),
            (At(1799), &[]),
            (At(1800), RENEW),
            (Ack(SERVER, 3600), USE),
            (At(3599), &[]),
            (At(3600), RENEW),
        ]);
        assert!(matches!(client.state, State::Renewing(_)));
    }

    #[test]
    fn the_lease_counts_from_the_question_not_from_the_answer() {
        play(&[
            (At(0), &["discover after 0 s"]),
            (Offer(SERVER), SELECT),
            // Its repetition is answered.
            (At(3), SELECT),
            (At(3), &[]),
            (Ack(SERVER, 3600), USE),
            (At(1802), &[]),
            (At(1803), RENEW),
        ]);
    }

    #[test]
    fn a_server_that_is_gone_is_asked_then_any_server_then_the_address_is_given_up() {
        let client = play(&[
            (At(0), &["discover after 0 s"]),
            (Offer(SERVER), SELECT),
            (Ack(SERVER, 3600), USE),
            (At(1800), RENEW),
            // After half of the time until any server is asked, but a minute at least.
            (At(2474), &[]),
            (At(2475), RENEW),
            (At(2813), RENEW),
            (At(2982), RENEW),
            (At(3067), RENEW),
            (At(3127), RENEW),
            (At(3150), REBIND),
            (At(3374), &[]),
            (At(3375), REBIND),
            (At(3488), REBIND),
            (At(3548), REBIND),
            (At(3600), &["drop", "discover after 0 s"]),
        ]);
        assert!(matches!(client.state, State::Selecting));
    }

    #[test]
    fn another_server_may_take_the_lease_over() {
        play(&[
            (At(0), &["discover after 0 s"]),
            (Offer(SERVER), SELECT),
            (Ack(SERVER, 3600), USE),
            (At(3200), REBIND),
            (Ack(OTHER, 3600), &["use 10.0.2.15 of 10.0.2.3"]),
            (At(5000), &["renew 10.0.2.15 at 10.0.2.3"]),
        ]);
    }

    #[test]
    fn a_refusal_takes_the_address_away_and_begins_anew() {
        play(&[
            (At(0), &["discover after 0 s"]),
            (Offer(SERVER), SELECT),
            (Ack(SERVER, 3600), USE),
            (At(1800), RENEW),
            (Nak(SERVER), &["drop", "discover after 0 s"]),
            (Offer(OTHER), &["select 10.0.2.15 of 10.0.2.3"]),
        ]);
    }

    #[test]
    fn a_server_that_refuses_its_own_offer_is_not_asked_without_pause() {
        play(&[
            (At(0), &["discover after 0 s"]),
            (Offer(SERVER), SELECT),
            (Nak(OTHER), &[]),
            (Nak(SERVER), &[]),
            (At(9), &[]),
            (At(10), &["discover after 0 s"]),
        ]);
    }

    #[test]
    fn a_server_that_offers_and_falls_silent_is_left_for_another() {
        play(&[
            (At(0), &["discover after 0 s"]),
            (Offer(SERVER), SELECT),
            (At(3), SELECT),
            (At(8), SELECT),
            (At(15), SELECT),
            (At(25), &["discover after 0 s"]),
            (Offer(OTHER), &["select 10.0.2.15 of 10.0.2.3"]),
            (Ack(SERVER, 3600), &[]),
        ]);
    }

    #[test]
    fn what_nobody_asked_for_changes_nothing() {
        play(&[
            (Stray(Said::Ack(lease(SERVER, 60))), &[]),
            (At(0), &["discover after 0 s"]),
            (Ack(SERVER, 3600), &[]),
            (Stray(Said::Offer(lease(SERVER, 60))), &[]),
            (Offer(SERVER), SELECT),
            (Offer(OTHER), &[]),
            (Ack(SERVER, 3600), USE),
            (Nak(SERVER), &[]),
            (Ack(OTHER, 60), &[]),
            (At(1800), RENEW),
        ]);
    }

    #[test]
    fn a_lease_for_ever_is_never_asked_for_again() {
        let client = play(&[
            (At(0), &["discover after 0 s"]),
            (Offer(SERVER), SELECT),
            (Ack(SERVER, u32::MAX), USE),
            (At(u64::from(u32::MAX) * 2), &[]),
        ]);
        assert_eq!(client.due(), None);
    }

    #[test]
    fn a_machine_that_slept_through_its_lease_gives_it_up() {
        play(&[
            (At(0), &["discover after 0 s"]),
            (Offer(SERVER), SELECT),
            (Ack(SERVER, 3600), USE),
            (At(9000), &["drop", "discover after 0 s"]),
        ]);
    }
}
