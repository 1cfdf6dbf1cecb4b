//! Bounds: the entry and the character too many are refused by name, wherever they stand.

use serde_json::{Value, json};

use crate::input::bounds;

fn refused(body: &Value) -> (String, String) {
    let no = bounds::request(body).unwrap_err();
    (no.field, no.fix)
}

#[test]
fn a_list_one_too_long_is_refused_by_name_with_its_bound() {
    let body = |count| json!({ "machine_networks": vec![json!({ "cidr": "10.0.0.0/24" }); count] });
    assert_eq!(bounds::request(&body(256)), Ok(()));
    assert_eq!(
        refused(&body(257)),
        ("machine_networks".into(), "give at most 256".into())
    );
}

#[test]
fn a_text_one_too_long_is_refused_by_its_path() {
    let body = |count| json!({ "kernel_arguments": [{}, { "value": "x".repeat(count) }] });
    assert_eq!(bounds::request(&body(4096)), Ok(()));
    assert_eq!(refused(&body(4097)).0, "kernel_arguments.1.value");
}

#[test]
fn characters_are_counted_and_not_bytes() {
    let body = |count: usize| json!({ "name": "ü".repeat(count) });
    assert_eq!(bounds::request(&body(1024)), Ok(()));
    assert_eq!(refused(&body(1025)), ("name".into(), "use at most 1024".into()));
}

#[test]
fn what_no_table_knows_is_bounded_too() {
    assert_eq!(refused(&json!({ "new": vec![1; 257] })).0, "new");
    assert_eq!(
        refused(&json!({ "data": { "x": "y".repeat(65_537) } })).0,
        "data.x"
    );
    let wide: serde_json::Map<_, _> = (0..1025).map(|n| (n.to_string(), Value::Null)).collect();
    assert_eq!(refused(&json!({ "data": wide })).0, "data");
    assert_eq!(refused(&json!(vec![1; 257])).0, "body");
}

#[test]
fn a_zero_is_refused_by_the_field_that_has_it() {
    assert_eq!(
        refused(&json!({ "proxy": { "no_proxy": "a\0b" } })).0,
        "proxy.no_proxy"
    );
    assert_eq!(refused(&json!({ "args": ["-n", "\0"] })).0, "args.1");
    assert_eq!(refused(&json!({ "data": { "a\0": 1 } })).0, "data");
}

#[test]
fn reports_of_agents_lose_their_zeros_and_keep_the_rest() {
    let mut report = json!({ "system_vendor": { "serial_number": "S1\0\0" } });
    assert_eq!(bounds::report(&mut report), Ok(()));
    assert_eq!(report["system_vendor"]["serial_number"], "S1");
    let mut report = json!({ "disks": vec![json!({}); 4097] });
    assert_eq!(bounds::report(&mut report).unwrap_err().field, "disks");
}

#[test]
fn overlaps_are_found_wherever_the_two_networks_stand() {
    use crate::input::network::no_overlap;
    use crate::networks::overlap;
    let mut state = 7_u32;
    let mut next = |most: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % most
    };
    let (mut apart, mut colliding) = (0, 0);
    for _ in 0..2000 {
        let count = next(6) + 2;
        let nets: Vec<ipnet::IpNet> = (0..count)
            .map(|_| {
                let (prefix, octet) = (10 + next(15), next(256));
                let text = format!("10.{octet}.{}.0/{prefix}", next(4) * 64);
                text.parse::<ipnet::IpNet>().unwrap().trunc()
            })
            .collect();
        let expected = (0..nets.len()).any(|a| (0..a).any(|b| overlap(&nets[a], &nets[b])));
        let found = no_overlap(&[], &[], &nets);
        assert_eq!(found.is_err(), expected, "{nets:?}");
        *if expected { &mut colliding } else { &mut apart } += 1;
    }
    assert!(apart > 50 && colliding > 50, "{apart} {colliding}");
}
