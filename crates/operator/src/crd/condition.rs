//! Conditions in their three shapes. Each has its own rule for when its times move, so each has its own setter.

use super::rest_names::in_kubernetes;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether something holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    True,
    False,
    Unknown,
}

impl Truth {
    pub fn word(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// What is to be said about one type of condition; the same for all shapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub type_: &'static str,
    pub status: Truth,
    pub reason: String,
    pub message: String,
}

impl Finding {
    pub fn new(
        type_: &'static str,
        status: impl Into<Truth>,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            type_,
            status: status.into(),
            reason: reason.into(),
            message: in_kubernetes(&message.into()),
        }
    }
}

/// A condition of InfraEnv, Agent, AgentClassification and AgentServiceConfig.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceCondition {
    /// The type of the condition.
    #[serde(rename = "type")]
    pub type_: String,
    /// True, False or Unknown.
    pub status: String,
    /// Never set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_heartbeat_time: Option<Time>,
    /// When `status` changed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// The reason in one word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The reason in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A condition of AgentClusterInstall, as Hive reads it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstallCondition {
    /// The type of the condition.
    #[serde(rename = "type")]
    #[schemars(length(max = 256))]
    pub type_: String,
    /// True, False or Unknown.
    pub status: String,
    /// When any of status, reason and message changed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_probe_time: Option<Time>,
    /// When any of status, reason and message changed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// The reason in few words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub reason: String,
    /// The reason in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// The time of transition moves only with the status.
pub fn set_service(list: &mut Vec<ServiceCondition>, finding: Finding, now: Timestamp) {
    let now = Some(Time(now));
    match list.iter_mut().find(|condition| condition.type_ == finding.type_) {
        Some(condition) => {
            if condition.status != finding.status.word() {
                condition.status = finding.status.word().into();
                condition.last_transition_time = now;
            }
            condition.reason = finding.reason;
            condition.message = finding.message;
        }
        None => list.push(ServiceCondition {
            type_: finding.type_.into(),
            status: finding.status.word().into(),
            last_heartbeat_time: None,
            last_transition_time: now,
            reason: finding.reason,
            message: finding.message,
        }),
    }
}

/// Both times move with any difference.
pub fn set_install(list: &mut Vec<InstallCondition>, finding: Finding, now: Timestamp) {
    let fresh = InstallCondition {
        type_: finding.type_.into(),
        status: finding.status.word().into(),
        last_probe_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
        reason: finding.reason,
        message: finding.message,
    };
    match list.iter_mut().find(|condition| condition.type_ == finding.type_) {
        Some(condition) => {
            let same = condition.status == fresh.status
                && condition.reason == fresh.reason
                && condition.message == fresh.message;
            if !same {
                *condition = fresh;
            }
        }
        None => list.push(fresh),
    }
}

/// The time of transition moves only with the status; the condition names the observed generation.
pub fn set_standard(list: &mut Vec<Condition>, finding: Finding, generation: Option<i64>, now: Timestamp) {
    match list.iter_mut().find(|condition| condition.type_ == finding.type_) {
        Some(condition) => {
            if condition.status != finding.status.word() {
                condition.status = finding.status.word().into();
                condition.last_transition_time = Time(now);
            }
            condition.reason = finding.reason;
            condition.message = finding.message;
            condition.observed_generation = generation;
        }
        None => list.push(Condition {
            type_: finding.type_.into(),
            status: finding.status.word().into(),
            last_transition_time: Time(now),
            reason: finding.reason,
            message: finding.message,
            observed_generation: generation,
        }),
    }
}

pub fn find_service<'a>(list: &'a [ServiceCondition], type_: &str) -> Option<&'a ServiceCondition> {
    list.iter().find(|condition| condition.type_ == type_)
}

pub fn find_install<'a>(list: &'a [InstallCondition], type_: &str) -> Option<&'a InstallCondition> {
    list.iter().find(|condition| condition.type_ == type_)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn finding(holds: bool, reason: &str, message: &str) -> Finding {
        Finding::new("Bound", holds, reason, message)
    }

    #[test]
    fn refusals_of_the_hub_name_fields_as_objects_have_them_and_give_advice_once() {
        use crate::error::Refusal;
        let problem = br#"{"type":"about:blank#invalid","title":"Bad Request","status":400,"code":"invalid",
            "detail":"`api_vips` cannot be set while you manage the network yourself.",
            "next_action":"Leave both lists empty."}"#;
        let handler = br#"{"kind":"Error","id":400,"href":"","code":"400",
            "reason":"`api_vips` cannot be set while you manage the network yourself: leave both lists empty."}"#;
        for (body, ends) in [
            (&problem[..], ". (Leave both lists empty.)"),
            (&handler[..], ": leave both lists empty."),
        ] {
            let failure = Refusal::from(muster_contract::ClientError::refused(400, body));
            let finding = Finding::new("SpecSynced", false, "InputError", failure.text());
            assert_eq!(
                finding.message,
                format!("bad input: `apiVIPs` cannot be set while you manage the network yourself{ends}")
            );
        }
    }

    #[test]
    fn a_service_condition_keeps_its_time_while_only_the_words_change() {
        let mut list = Vec::new();
        set_service(&mut list, finding(false, "Unbound", "free"), at(1));
        set_service(&mut list, finding(false, "Binding", "on its way"), at(2));
        assert_eq!(
            (list.len(), list[0].last_transition_time.clone()),
            (1, Some(Time(at(1))))
        );
        assert_eq!(
            (list[0].reason.as_str(), list[0].message.as_str()),
            ("Binding", "on its way")
        );
        set_service(&mut list, finding(true, "Bound", "lent"), at(3));
        assert_eq!(list[0].last_transition_time, Some(Time(at(3))));
        assert_eq!(list[0].last_heartbeat_time, None);
    }

    #[test]
    fn both_times_of_an_install_condition_move_with_any_difference_and_with_none_stay() {
        let mut list = Vec::new();
        set_install(&mut list, finding(false, "Unbound", "free"), at(1));
        set_install(&mut list, finding(false, "Unbound", "free"), at(2));
        assert_eq!(list[0].last_probe_time, Some(Time(at(1))));
        set_install(&mut list, finding(false, "Unbound", "still free"), at(3));
        assert_eq!(
            (
                list[0].last_probe_time.clone(),
                list[0].last_transition_time.clone()
            ),
            (Some(Time(at(3))), Some(Time(at(3))))
        );
    }

    #[test]
    fn a_standard_condition_has_the_observed_generation() {
        let mut list = Vec::new();
        set_standard(&mut list, finding(false, "Unbound", "free"), Some(1), at(1));
        set_standard(&mut list, finding(false, "Unbound", "free"), Some(2), at(2));
        assert_eq!(list[0].observed_generation, Some(2));
        assert_eq!(list[0].last_transition_time, Time(at(1)));
    }

    #[test]
    fn conditions_are_appended_and_keep_their_order() {
        let mut list = Vec::new();
        for type_ in ["SpecSynced", "Connected", "SpecSynced"] {
            set_service(&mut list, Finding::new(type_, true, "R", ""), at(1));
        }
        let types: Vec<_> = list.iter().map(|condition| condition.type_.as_str()).collect();
        assert_eq!(types, ["SpecSynced", "Connected"]);
    }
}
