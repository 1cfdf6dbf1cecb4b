//! The public names of the cluster checks; clients look findings up by them, so they never change.

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
