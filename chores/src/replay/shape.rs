//! Compares two bodies by shape: keys and types all the way down, words and dates where they matter.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::mask::inside;
use super::report::{Difference, What};
use super::states::{self, Timeline, Timing};
use super::values;

/// Objects whose keys are data, not fields: only their values have a shape.
const MAPS: &[&str] = &[
    "feature_usage",
    "images_status",
    "majority_groups",
    "l3_connected_addresses",
    "openshift-versions",
];
/// The members that tell elements of a list apart, best first.
const NAMES: &[&str] = &["id", "step_type", "path", "name"];

pub struct Comparer<'a> {
    pub timeline: &'a Timeline<'a>,
    /// The exchange the bodies belong to.
    pub index: usize,
}

/// A place in the recorded body.
#[derive(Clone, Copy)]
struct At<'a> {
    path: &'a str,
    key: &'a str,
    /// Inside an object that is ahead in time: contents may differ, forms may not.
    lenient: bool,
    /// Inside a host whose recorded findings are those of a tick before it changed sides.
    stale: bool,
    /// Checks that the host around this has no more, though the recorded service may not have noticed yet.
    dropped: &'static [&'static str],
}

impl<'a> At<'a> {
    fn within<'b>(&self, path: &'b str, key: &'b str) -> At<'b> {
        At {
            path,
            key,
            lenient: self.lenient,
            stale: self.stale,
            dropped: self.dropped,
        }
    }
}

impl Comparer<'_> {
    /// `name` is the key the whole body goes by, "" for none.
    pub fn bodies(&self, name: &str, recorded: &Value, ours: &Value) -> Vec<Difference> {
        let mut found = Vec::new();
        self.values(
            At {
                path: "$",
                key: name,
                lenient: false,
                stale: false,
                dropped: &[],
            },
            &[recorded],
            ours,
            &mut found,
        );
        let mut seen = BTreeSet::new();
        found.retain(|difference| seen.insert(difference.to_string()));
        found
    }

    /// Compares ours with all recorded values that may stand at this place.
    fn values(&self, at: At<'_>, recorded: &[&Value], ours: &Value, found: &mut Vec<Difference>) {
        let alike: Vec<&Value> = recorded
            .iter()
            .copied()
            .filter(|value| kind(value) == kind(ours))
            .collect();
        if alike.is_empty() {
            let nothing = |value: &Value| value.is_null();
            if !(at.lenient && (nothing(ours) || recorded.iter().any(|value| nothing(value)))) {
                let theirs = recorded.first().map_or("nothing", |value| kind(value));
                found.push(Difference::new(What::Type, at.path, theirs, kind(ours)));
            }
            return;
        }
        match ours {
            Value::Object(ours) => {
                let maps: Vec<&Map<String, Value>> =
                    alike.iter().filter_map(|value| value.as_object()).collect();
                if MAPS.contains(&at.key) {
                    self.dictionary(at, &maps, ours, found);
                } else {
                    self.objects(at, &maps, ours, found);
                }
            }
            Value::Array(ours) => {
                let lists: Vec<&Vec<Value>> = alike.iter().filter_map(|value| value.as_array()).collect();
                self.lists(at, &lists, ours, found);
            }
            Value::String(ours) => {
                let texts: Vec<&str> = alike.iter().filter_map(|value| value.as_str()).collect();
                self.strings(at, &texts, ours, found);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn objects(
        &self,
        at: At<'_>,
        recorded: &[&Map<String, Value>],
        ours: &Map<String, Value>,
        found: &mut Vec<Difference>,
    ) {
        let timing = match recorded {
            [one] => self.timeline.judge(self.index, one, ours),
            _ => Timing::Same,
        };
        let mut at = at;
        let (may_have, may_lack) = match timing {
            Timing::Same => Default::default(),
            Timing::Ahead { may_have, may_lack } => {
                at.lenient = true;
                (may_have, may_lack)
            }
            Timing::Wrong => {
                let state = |map: &Map<String, Value>| super::recording::word(map, "status").to_owned();
                let path = format!("{}.status", at.path);
                found.push(Difference::new(
                    What::State,
                    &path,
                    &state(recorded[0]),
                    &state(ours),
                ));
                // The rest follows from the state; listing it would only hide the cause.
                return;
            }
        };
        let unseen = matches!(recorded, [host] if states::awaits_first_tick(host));
        at.stale |= matches!(recorded, [host] if states::shows_former_side(host));
        if let [host] = recorded
            && states::is_host(host)
        {
            at.dropped = states::dropped_checks(host);
        }
        // Inside an object that is ahead only its own keys are judged, by what its kind shows elsewhere.
        let judged = !at.lenient || !may_have.is_empty();
        let everywhere = |key: &String| recorded.iter().all(|map| map.contains_key(key));
        for key in recorded[0]
            .keys()
            .filter(|key| everywhere(key) && !ours.contains_key(*key))
        {
            if judged && !may_lack.contains(key) {
                let path = format!("{}.{key}", at.path);
                found.push(Difference::new(
                    What::Missing,
                    &path,
                    kind(&recorded[0][key]),
                    "absent",
                ));
            }
        }
        for (key, value) in ours {
            let path = format!("{}.{key}", at.path);
            let theirs: Vec<&Value> = recorded.iter().filter_map(|map| map.get(key)).collect();
            if theirs.is_empty() && unseen && key == "validations_info" {
                found.push(Difference::new(What::Stale, &path, "none yet", "those of now"));
            } else if theirs.is_empty() {
                if judged && !may_have.contains(key) {
                    found.push(Difference::new(What::Extra, &path, "absent", kind(value)));
                }
            } else if !(key == "status" && at.lenient) {
                self.values(at.within(&path, key), &theirs, value, found);
            }
        }
    }

    fn dictionary(
        &self,
        at: At<'_>,
        recorded: &[&Map<String, Value>],
        ours: &Map<String, Value>,
        found: &mut Vec<Difference>,
    ) {
        let theirs: Vec<&Value> = recorded.iter().flat_map(|map| map.values()).collect();
        if theirs.is_empty() != ours.is_empty() && !at.lenient {
            found.push(Difference::new(
                What::Length,
                at.path,
                &theirs.len().to_string(),
                &ours.len().to_string(),
            ));
        }
        let path = format!("{}.*", at.path);
        for value in ours.values().filter(|_| !theirs.is_empty()) {
            self.values(at.within(&path, "*"), &theirs, value, found);
        }
    }

    fn lists(&self, at: At<'_>, recorded: &[&Vec<Value>], ours: &[Value], found: &mut Vec<Difference>) {
        let theirs: Vec<&Value> = recorded.iter().flat_map(|list| list.iter()).collect();
        if let ([list], false) = (recorded, at.lenient)
            && list.len() != ours.len()
        {
            let counts = (list.len().to_string(), ours.len().to_string());
            found.push(Difference::new(What::Length, at.path, &counts.0, &counts.1));
        }
        let all = || theirs.iter().copied().chain(ours);
        let name = NAMES
            .iter()
            .find(|name| all().all(|element| element.get(**name).is_some_and(Value::is_string)));
        match name {
            Some(name) if !theirs.is_empty() => self.named(at, name, &theirs, ours, found),
            _ => {
                let path = format!("{}[]", at.path);
                for element in ours.iter().filter(|_| !theirs.is_empty()) {
                    self.values(at.within(&path, at.key), &theirs, element, found);
                }
            }
        }
    }

    fn named(&self, at: At<'_>, name: &str, theirs: &[&Value], ours: &[Value], found: &mut Vec<Difference>) {
        let mut groups: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        for element in theirs {
            groups
                .entry(element[name].as_str().unwrap_or_default())
                .or_default()
                .push(element);
        }
        for element in ours {
            let called = element[name].as_str().unwrap_or_default();
            let path = format!("{}[{called}]", at.path);
            match groups.get(called) {
                Some(group) => self.values(at.within(&path, at.key), group, element, found),
                None if at.lenient => {}
                None => found.push(Difference::new(What::Extra, &path, "absent", "present")),
            }
        }
        let have: BTreeSet<&str> = ours.iter().filter_map(|element| element[name].as_str()).collect();
        for called in groups
            .keys()
            .filter(|called| !at.lenient && !have.contains(*called))
        {
            let path = format!("{}[{called}]", at.path);
            found.push(Difference::new(What::Missing, &path, "present", "absent"));
        }
    }

    fn strings(&self, at: At<'_>, recorded: &[&str], ours: &str, found: &mut Vec<Difference>) {
        let theirs = recorded[0];
        let inner: Vec<Value> = recorded.iter().filter_map(|text| inside(text)).collect();
        let path = format!("{}:", at.path);
        if !inner.is_empty() {
            match inside(ours) {
                Some(ours) if at.key == "validations_info" => {
                    checks(at.within(&path, at.key), &inner[0], &ours, found);
                }
                Some(ours) => {
                    self.values(
                        at.within(&path, at.key),
                        &inner.iter().collect::<Vec<_>>(),
                        &ours,
                        found,
                    );
                }
                // Lists of arguments mix plain words with JSON.
                None if inner.len() < recorded.len() => {}
                None => {
                    found.push(Difference::new(
                        What::Type,
                        at.path,
                        "JSON in a string",
                        "another string",
                    ));
                }
            }
        } else if values::is_text(at.key) {
            if ours.is_empty() && recorded.iter().all(|text| !text.is_empty()) {
                found.push(Difference::new(What::Text, at.path, "a text", "an empty string"));
            }
        } else if values::is_word(at.key) {
            if !at.lenient && !recorded.contains(&ours) {
                found.push(Difference::new(What::Word, at.path, theirs, ours));
            }
        } else if let Some(class) = values::date(at.key, theirs) {
            let our = values::date(at.key, ours);
            let known = recorded.iter().any(|text| values::date(at.key, text) == our);
            if our.is_none() || !known && !at.lenient {
                let name = our.map_or("no date", values::Date::name);
                found.push(Difference::new(What::Date, at.path, class.name(), name));
            }
        }
    }
}

/// Checks compare by which there are; their results depend on the moment, but the words are fixed.
fn checks(at: At<'_>, recorded: &Value, ours: &Value, found: &mut Vec<Difference>) {
    let ids = |value: &Value| -> BTreeMap<String, BTreeSet<String>> {
        let categories = value.as_object().into_iter().flatten();
        let id = |check: &Value| {
            check
                .get("id")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        categories
            .map(|(name, list)| {
                (
                    name.clone(),
                    list.as_array().into_iter().flatten().map(id).collect(),
                )
            })
            .collect()
    };
    for check in ours
        .as_object()
        .into_iter()
        .flat_map(Map::values)
        .filter_map(Value::as_array)
        .flatten()
    {
        let status = check.get("status").and_then(Value::as_str).unwrap_or_default();
        if !values::CHECK_WORDS.contains(&status) {
            let path = format!("{}[{}].status", at.path, check["id"].as_str().unwrap_or_default());
            found.push(Difference::new(
                What::Word,
                &path,
                "the status of a check",
                status,
            ));
        }
    }
    if at.lenient {
        return;
    }
    let (theirs, ours) = (ids(recorded), ids(ours));
    if at.stale && theirs != ours {
        found.push(Difference::new(
            What::Stale,
            at.path,
            "those of the former side",
            "those of now",
        ));
        return;
    }
    let nothing = BTreeSet::new();
    for category in theirs.keys().chain(ours.keys()).collect::<BTreeSet<_>>() {
        let path = format!("{}.{category}", at.path);
        match (theirs.get(category), ours.get(category)) {
            (Some(_), None) => found.push(Difference::new(What::Missing, &path, "present", "absent")),
            (theirs, ours) => {
                let (theirs, ours) = (theirs.unwrap_or(&nothing), ours.unwrap_or(&nothing));
                for id in theirs.symmetric_difference(ours) {
                    let path = format!("{path}[{id}]");
                    found.push(if theirs.contains(id) && at.dropped.contains(&id.as_str()) {
                        Difference::new(What::Stale, &path, "those of the last tick", "those of now")
                    } else if theirs.contains(id) {
                        Difference::new(What::Missing, &path, "present", "absent")
                    } else {
                        Difference::new(What::Extra, &path, "absent", "present")
                    });
                }
            }
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
