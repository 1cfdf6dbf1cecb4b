//! Questions to many networks at once, answered without holding each of them against each other.
//!
//! Networks lie inside one another or apart. In the order of their first addresses, the larger before the smaller,
//! those around a network are therefore the ones before it that have not ended yet.

use ipnet::IpNet;
use std::net::IpAddr;

fn order(network: &IpNet) -> (IpAddr, u8) {
    (network.network(), network.prefix_len())
}

/// The addresses that lie in at least one of some networks.
pub(crate) struct Union {
    /// Those that lie in no other, in order.
    outermost: Vec<IpNet>,
}

impl Union {
    pub fn of(networks: impl IntoIterator<Item = IpNet>) -> Self {
        let mut sorted: Vec<IpNet> = networks.into_iter().collect();
        sorted.sort_by_key(order);
        let mut outermost: Vec<IpNet> = Vec::new();
        for network in sorted {
            if outermost.last().is_none_or(|last| !last.contains(&network)) {
                outermost.push(network);
            }
        }
        Self { outermost }
    }

    /// Networks as they are stored; what does not parse is left out.
    pub fn parse(texts: &[String]) -> Self {
        Self::of(texts.iter().filter_map(|text| text.parse().ok()))
    }

    pub fn holds(&self, ip: IpAddr) -> bool {
        let begun = self.outermost.partition_point(|network| network.network() <= ip);
        self.outermost[..begun]
            .last()
            .is_some_and(|network| network.contains(&ip))
    }
}

/// Where the first network stands that overlaps a later one of another owner, and the first of those.
pub(crate) fn first_overlap<T: PartialEq>(all: &[(T, IpNet)]) -> Option<(usize, usize)> {
    let mut sorted: Vec<usize> = (0..all.len()).collect();
    sorted.sort_by_key(|at| order(&all[*at].1));
    let mut around: Vec<Around> = Vec::new();
    let mut earliest: Option<usize> = None;
    for at in sorted {
        let (owner, network) = &all[at];
        while around.pop_if(|last| !all[last.at].1.contains(network)).is_some() {}
        let outer = around.last();
        if let Some(other) = outer.and_then(|outer| outer.first_of_another(all, owner)) {
            let first = at.min(other);
            earliest = Some(earliest.map_or(first, |earliest| earliest.min(first)));
        }
        around.push(Around::new(all, at, outer));
    }
    let first = earliest?;
    let (owner, network) = &all[first];
    let later = all[first + 1..]
        .iter()
        .position(|(other, second)| other != owner && overlap(network, second))?;
    Some((first, first + 1 + later))
}

/// Whether two networks share addresses.
pub(crate) fn overlap(a: &IpNet, b: &IpNet) -> bool {
    a.contains(b) || b.contains(a)
}

/// A network and those around it, of which there may be many when they are all the same.
struct Around {
    at: usize,
    /// The first of them all.
    first: usize,
    /// The first of another owner than `first` has.
    other: Option<usize>,
}

impl Around {
    fn new<T: PartialEq>(all: &[(T, IpNet)], at: usize, outer: Option<&Self>) -> Self {
        let same = |one: usize, two: usize| all[one].0 == all[two].0;
        let Some(outer) = outer else {
            return Self {
                at,
                first: at,
                other: None,
            };
        };
        let first = outer.first.min(at);
        let others = [Some(outer.first), outer.other, Some(at)];
        let other = others
            .into_iter()
            .flatten()
            .filter(|one| !same(*one, first))
            .min();
        Self { at, first, other }
    }

    fn first_of_another<T: PartialEq>(&self, all: &[(T, IpNet)], owner: &T) -> Option<usize> {
        if all[self.first].0 == *owner {
            self.other
        } else {
            Some(self.first)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Few enough networks of few enough sizes that they often lie in one another, or are the same.
    fn network() -> impl Strategy<Value = IpNet> {
        (any::<bool>(), 0u8..4, 0u8..4, 6u8..=32).prop_map(|(v4, a, b, prefix)| {
            let text = if v4 {
                format!("{}.0.0.{b}/{prefix}", a * 64)
            } else {
                format!("{:x}::{b}/{}", u32::from(a) * 0x4000, prefix * 4)
            };
            text.parse::<IpNet>().unwrap()
        })
    }

    proptest! {
        #[test]
        fn the_pair_found_is_the_one_that_looking_at_all_pairs_finds(
            all in proptest::collection::vec((0u8..3, network()), 0..9),
        ) {
            let pairs = (0..all.len()).flat_map(|one| (one + 1..all.len()).map(move |two| (one, two)));
            let clash = |(one, two): &(usize, usize)| {
                all[*one].0 != all[*two].0 && overlap(&all[*one].1, &all[*two].1)
            };
            prop_assert_eq!(first_overlap(&all), pairs.into_iter().find(clash));
        }

        #[test]
        fn a_union_holds_what_one_of_its_networks_holds(
            all in proptest::collection::vec(network(), 0..9),
            asked in proptest::collection::vec(network(), 9),
        ) {
            let union = Union::of(all.iter().copied());
            for ip in asked.iter().map(IpNet::addr).chain(asked.iter().map(IpNet::broadcast)) {
                prop_assert_eq!(union.holds(ip), all.iter().any(|network| network.contains(&ip)), "{}", ip);
            }
        }
    }

    fn single(n: u32) -> IpNet {
        IpNet::from(IpAddr::from((0x0A00_0000 + n).to_be_bytes()))
    }

    #[test]
    fn many_networks_are_not_held_against_each_other() {
        const MANY: u32 = 500_000;
        let apart: Vec<(u32, IpNet)> = (0..MANY).map(|n| (n, single(n))).collect();
        assert_eq!(first_overlap(&apart), None);
        let same: Vec<(u32, IpNet)> = (0..MANY).map(|_| (0, single(1))).collect();
        assert_eq!(first_overlap(&same), None);
        let mut last_differs = same;
        last_differs.push((1, single(1)));
        assert_eq!(first_overlap(&last_differs), Some((0, MANY as usize)));
        let union = Union::of(apart.iter().map(|(_, network)| *network));
        assert!((0..MANY).all(|n| union.holds(single(n).addr())));
        assert!(!union.holds(single(MANY).addr()));
    }
}
