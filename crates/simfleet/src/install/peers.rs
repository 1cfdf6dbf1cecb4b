//! What installers and controllers read in the list of a cluster's hosts.

use muster_contract::v2::install::HostStage;
use serde::Deserialize;
use std::borrow::Cow;
use uuid::Uuid;

/// A control plane can be worked with when so many of its nodes have joined.
const ENOUGH_MASTERS: usize = 2;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Peer<'a> {
    pub id: Uuid,
    #[serde(borrow)]
    pub status: Cow<'a, str>,
    #[serde(borrow)]
    pub role: Cow<'a, str>,
    pub bootstrap: bool,
    #[serde(borrow)]
    pub progress: Option<PeerProgress<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct PeerProgress<'a> {
    #[serde(borrow)]
    pub current_stage: Cow<'a, str>,
}

/// The hosts of a cluster.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct Peers<'a>(#[serde(borrow)] pub Vec<Peer<'a>>);

impl Peer<'_> {
    fn stage(&self) -> Option<HostStage> {
        let word = self.progress.as_ref()?.current_stage.as_ref();
        HostStage::ALL.iter().copied().find(|stage| stage.word() == word)
    }

    fn is_master(&self) -> bool {
        self.role == "master"
    }

    fn has_joined(&self) -> bool {
        matches!(self.stage(), Some(HostStage::Joined | HostStage::Done))
    }

    /// Whether its installation can still end well.
    fn has_hope(&self) -> bool {
        matches!(
            self.status.as_ref(),
            "installing" | "installing-in-progress" | "installing-pending-user-action" | "installed"
        )
    }
}

impl<'a> Peers<'a> {
    pub fn read(body: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }

    fn masters_but(&self, me: Uuid) -> impl Iterator<Item = &Peer<'a>> {
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
        bootstrap.is_none_or(|peer| {
            matches!(
                peer.stage(),
                Some(
                    HostStage::WaitingForController
                        | HostStage::Rebooting
                        | HostStage::Configuring
                        | HostStage::Joined
                        | HostStage::Done
                )
            )
        })
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
        masters.all(|peer| peer.stage() == Some(HostStage::Done))
    }
}
