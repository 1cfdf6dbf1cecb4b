//! What installers and controllers read in the list of a cluster's hosts.

use muster_vocabulary::{HostStatus, Role, Stage, Word};
use serde::Deserialize;
use uuid::Uuid;

/// A control plane can be worked with when so many of its nodes have joined.
const ENOUGH_MASTERS: usize = 2;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Peer {
    pub id: Uuid,
    pub status: Word<HostStatus>,
    pub role: Word<Role>,
    pub bootstrap: bool,
    pub progress: Option<PeerProgress>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct PeerProgress {
    pub current_stage: Word<Stage>,
}

/// The hosts of a cluster.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct Peers(pub Vec<Peer>);

impl Peer {
    fn stage(&self) -> Option<Stage> {
        self.progress.as_ref()?.current_stage.known()
    }

    fn is_master(&self) -> bool {
        self.role == Role::Master
    }

    fn has_joined(&self) -> bool {
        self.stage().is_some_and(Stage::has_joined)
    }

    /// Whether its installation can still end well.
    fn has_hope(&self) -> bool {
        self.status.is(HostStatus::is_installing) || self.status == HostStatus::Installed
    }
}

impl Peers {
    pub fn read(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }

    fn masters_but(&self, me: Uuid) -> impl Iterator<Item = &Peer> {
        self.0
            .iter()
            .filter(move |peer| peer.is_master() && peer.id != me)
    }

    /// Whether the installation of this host goes on, as far as the hub is concerned.
    pub fn still_installs(&self, me: Uuid) -> bool {
        self.0.iter().any(|peer| peer.id == me && peer.has_hope())
    }

    /// Whether enough masters besides this host have joined.
    pub fn control_plane_is_up(&self, me: Uuid) -> bool {
        let needed = self.masters_but(me).count().min(ENOUGH_MASTERS);
        self.masters_but(me).filter(|peer| peer.has_joined()).count() >= needed
    }

    /// Whether the bootstrap host, if there is one, has handed over to the controller.
    pub fn controller_runs(&self, me: Uuid) -> bool {
        let bootstrap = self.0.iter().find(|peer| peer.bootstrap && peer.id != me);
        bootstrap.is_none_or(|peer| peer.stage().is_some_and(Stage::has_handed_over))
    }

    /// Where the controller runs: all who ask come to the same answer. The bootstrap host reboots last, so it is the
    /// last choice.
    pub fn leader(&self) -> Option<Uuid> {
        let joined = self.0.iter().filter(|peer| peer.is_master() && peer.has_joined());
        joined
            .min_by_key(|peer| (peer.bootstrap, peer.id))
            .map(|peer| peer.id)
    }

    pub fn all_masters_are_done(&self) -> bool {
        let mut masters = self.0.iter().filter(|peer| peer.is_master());
        masters.all(|peer| peer.stage() == Some(Stage::Done))
    }
}
