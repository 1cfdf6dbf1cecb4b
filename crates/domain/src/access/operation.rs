//! An operation and its rule: what people need for it, which machines may, and where a token may be shown.

/// As in HTTP; `HEAD` is judged as `GET`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    pub fn word(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// What a person wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Anybody may, also without a token: it tells nothing of anybody.
    Open,
    /// Everybody who is known: it is the same for all.
    Look,
    /// To watch the hub itself.
    Watch,
    /// No person may: machines report by it.
    Report,
    /// A list of what the caller sees, and of nothing else.
    List,
    /// What happened to the objects that are named, or to all that the caller sees.
    ReadHistory,
    /// What a verb would do to the objects that are named.
    Plan,

    MakeInfraEnv,
    ReadInfraEnv,
    WriteInfraEnv,
    /// Make it under a chosen id, or find that it was made.
    PutInfraEnv,
    /// The image and what is in it, the pull secret of its owner among it.
    ReadImage,
    ListHosts,

    ReadHost,
    /// What its borrower sets, or its owner.
    ChangeHost,
    /// What only its owner does: approve, delete.
    RunHost,
    Lend,
    Return,
    Move,
    InstallHost,
    /// What a host is installed with, secrets of its cluster among it.
    ReadHostSecrets,

    MakeCluster,
    ReadCluster,
    WriteCluster,
    PutCluster,
    /// Pull secret, manifests, ignition and the password of kubeadmin.
    ReadClusterSecrets,
}

impl Action {
    pub const ALL: [Self; 26] = [
        Self::Open,
        Self::Look,
        Self::Watch,
        Self::Report,
        Self::List,
        Self::ReadHistory,
        Self::Plan,
        Self::MakeInfraEnv,
        Self::ReadInfraEnv,
        Self::WriteInfraEnv,
        Self::PutInfraEnv,
        Self::ReadImage,
        Self::ListHosts,
        Self::ReadHost,
        Self::ChangeHost,
        Self::RunHost,
        Self::Lend,
        Self::Return,
        Self::Move,
        Self::InstallHost,
        Self::ReadHostSecrets,
        Self::MakeCluster,
        Self::ReadCluster,
        Self::WriteCluster,
        Self::PutCluster,
        Self::ReadClusterSecrets,
    ];
}

/// Which machines may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Machines {
    NoOne,
    /// Those that booted the image of the InfraEnv.
    OfInfraEnv,
    /// Those, and whoever was given an address of the image.
    Readers,
    /// The same for media that take long to read: what was begun may be read to its end.
    Media,
    /// Those that register: any of the InfraEnv, and one with a credential of its own as itself.
    Registering,
    /// The host itself: any machine of its InfraEnv as long as it has no credential of its own.
    Itself,
    /// The host itself, and what runs in its cluster.
    ItselfOrCluster,
    /// Those bound to the cluster, and what runs in it.
    OfCluster,
    /// Those of what is named, of which something must be.
    OfWhatIsNamed,
}

/// Where a token is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// A person's, in the header `Authorization`.
    Authorization,
    /// A machine's, in the header `X-Secret-Key`.
    SecretKey,
    /// A machine's, in the query.
    ApiKey,
    /// Of an image, in the header `Image-Token`.
    ImageToken,
    /// Of an image, in the query.
    ImageTokenQuery,
    /// A token or a signature that is part of the path.
    Path,
}

/// One line of the table.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// As in the OpenAPI document.
    pub id: &'static str,
    pub method: Method,
    /// With the names of its parameters, as routes are written.
    pub path: &'static str,
    pub action: Action,
    pub machines: Machines,
    /// Any one of them is enough; tokens that are shown elsewhere do not count.
    pub carriers: &'static [Carrier],
}

impl Machines {
    pub const ALL: [Self; 9] = [
        Self::NoOne,
        Self::OfInfraEnv,
        Self::Readers,
        Self::Media,
        Self::Registering,
        Self::Itself,
        Self::ItselfOrCluster,
        Self::OfCluster,
        Self::OfWhatIsNamed,
    ];
}

impl Operation {
    pub fn takes(&self, carrier: Carrier) -> bool {
        self.carriers.contains(&carrier)
    }
}

impl PartialEq for Operation {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}
