//! The list of cluster checks: their public names, by which clients look findings up and which never change, what each
//! holds up, and what to do when it fails.

use super::{Category, Gate, Subject, configuration, hosts, networks, vips};
use crate::checks::finding::Outcome;
use crate::checks::id::Operator;

macro_rules! check_ids {
    ($($name:ident => $word:literal),* $(,)?) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum CheckId { $($name,)* Operator(Operator) }

        impl CheckId {
            pub const CORE: &'static [CheckId] = &[$(CheckId::$name),*];

            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                    Self::Operator(operator) => operator.check_id(),
                }
            }
        }
    };
}

check_ids! {
    PlatformRequirementsSatisfied => "platform-requirements-satisfied",
    PullSecretSet => "pull-secret-set",
    AllHostsAreReadyToInstall => "all-hosts-are-ready-to-install",
    SufficientMastersCount => "sufficient-masters-count",
    ApiVipsDefined => "api-vips-defined",
    ApiVipsValid => "api-vips-valid",
    ClusterCidrDefined => "cluster-cidr-defined",
    CustomManifestsRequirementsSatisfied => "custom-manifests-requirements-satisfied",
    DnsDomainDefined => "dns-domain-defined",
    IngressVipsDefined => "ingress-vips-defined",
    IngressVipsValid => "ingress-vips-valid",
    MachineCidrDefined => "machine-cidr-defined",
    MachineCidrEqualsToCalculatedCidr => "machine-cidr-equals-to-calculated-cidr",
    NetworkPrefixValid => "network-prefix-valid",
    NetworkTypeValid => "network-type-valid",
    NetworksSameAddressFamilies => "networks-same-address-families",
    NoCidrsOverlapping => "no-cidrs-overlapping",
    NtpServerConfigured => "ntp-server-configured",
    ServiceCidrDefined => "service-cidr-defined",
}

impl CheckId {
    /// Every id that may be named in a request or setting.
    pub fn parse(word: &str) -> Option<Self> {
        let core = Self::CORE.iter().copied().find(|id| id.as_str() == word);
        let operator = || Operator::ALL.iter().find(|operator| operator.check_id() == word);
        core.or_else(|| operator().map(|operator| Self::Operator(*operator)))
    }

    /// Whether the owner of a cluster may decide to live with a failure.
    pub fn is_ignorable(self) -> bool {
        !matches!(
            self,
            Self::ApiVipsDefined
                | Self::IngressVipsDefined
                | Self::AllHostsAreReadyToInstall
                | Self::SufficientMastersCount
                | Self::PullSecretSet
        )
    }
}

pub(super) type Check = (CheckId, Category, Gate, fn(&Subject<'_>) -> Outcome);

/// By category, then by id: the order they are shown in.
pub(super) const CHECKS: &[Check] = {
    use {Category::*, CheckId::*, Gate::*};
    &[
        (
            PlatformRequirementsSatisfied,
            Configuration,
            Nothing,
            configuration::platform,
        ),
        (PullSecretSet, Configuration, Inputs, configuration::pull_secret),
        (AllHostsAreReadyToInstall, HostsData, Required, hosts::all_ready),
        (SufficientMastersCount, HostsData, Required, hosts::masters),
        (ApiVipsDefined, Network, VipsDefined, vips::api_defined),
        (ApiVipsValid, Network, Required, vips::api_valid),
        (ClusterCidrDefined, Network, Inputs, networks::cluster_defined),
        (
            CustomManifestsRequirementsSatisfied,
            Network,
            Required,
            configuration::custom_manifests,
        ),
        (DnsDomainDefined, Network, Inputs, configuration::dns_domain),
        (IngressVipsDefined, Network, VipsDefined, vips::ingress_defined),
        (IngressVipsValid, Network, Required, vips::ingress_valid),
        (MachineCidrDefined, Network, Inputs, networks::machine_defined),
        (
            MachineCidrEqualsToCalculatedCidr,
            Network,
            Required,
            vips::machine_network_agrees,
        ),
        (NetworkPrefixValid, Network, Required, networks::prefix),
        (NetworkTypeValid, Network, Required, networks::network_type),
        (
            NetworksSameAddressFamilies,
            Network,
            Required,
            networks::same_families,
        ),
        (NoCidrsOverlapping, Network, Required, networks::no_overlap),
        (NtpServerConfigured, Network, Required, hosts::clocks_agree),
        (ServiceCidrDefined, Network, Inputs, networks::service_defined),
    ]
};

impl CheckId {
    /// What to do when it fails.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::PlatformRequirementsSatisfied => {
                "Change the cluster's platform, or bind hosts that fit it."
            }
            Self::PullSecretSet => "Set the cluster's pull secret.",
            Self::AllHostsAreReadyToInstall => "Run `explain` for the hosts that are not ready.",
            Self::SufficientMastersCount => "Bind more hosts, or change their roles.",
            Self::ApiVipsDefined | Self::ApiVipsValid => {
                "Set free addresses of the machine network as API addresses."
            }
            Self::IngressVipsDefined | Self::IngressVipsValid => {
                "Set free addresses of the machine network as ingress addresses."
            }
            Self::ClusterCidrDefined
            | Self::ServiceCidrDefined
            | Self::NetworkPrefixValid
            | Self::NetworkTypeValid
            | Self::NetworksSameAddressFamilies
            | Self::NoCidrsOverlapping => "Correct the cluster's networks.",
            Self::MachineCidrDefined | Self::MachineCidrEqualsToCalculatedCidr => {
                "Set the machine network, or virtual addresses inside a network of the hosts."
            }
            Self::DnsDomainDefined => "Set the cluster's base domain.",
            Self::CustomManifestsRequirementsSatisfied => {
                "Add the manifests that the cluster's settings ask for."
            }
            Self::NtpServerConfigured => "Name NTP servers for the cluster, or set its hosts' clocks.",
            Self::Operator(_) => "Choose other operators, or hosts that meet their needs.",
        }
    }
}
